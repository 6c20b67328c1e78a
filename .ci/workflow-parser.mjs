// Reads the workflow files named as arguments with GitHub's own parser; each error is a line, any error fails.
import { readFileSync } from "node:fs";
import { register } from "node:module";
import { pathToFileURL } from "node:url";

// The package is written for bundlers: it imports JSON as if that were a module.
const hook = `
import { readFile } from "node:fs/promises";
export async function load(url, context, next) {
  if (!url.endsWith(".json")) return next(url, context);
  return { format: "module", shortCircuit: true, source: "export default " + (await readFile(new URL(url), "utf8")) };
}`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);

// An ES module does not look in NODE_PATH by itself.
const home = pathToFileURL(`${process.env.NODE_PATH}/@actions/workflow-parser/dist/index.js`);
const { parseWorkflow, NoOperationTraceWriter } = await import(home);

let found = 0;
for (const file of process.argv.slice(2)) {
  const { context } = parseWorkflow({ name: file, content: readFileSync(file, "utf8") }, new NoOperationTraceWriter());
  for (const { message } of context.errors.getErrors()) {
    console.log(`${file}: ${message}`);
    found += 1;
  }
}
console.log(`workflow-parser: ${process.argv.length - 2} files, ${found} errors`);
process.exitCode = found ? 1 : 0;
