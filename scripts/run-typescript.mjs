// Builds the service if needed, then runs a TypeScript program: node scripts/run-typescript.mjs demo/demo.ts [arguments]
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`Slipway needs Node.js 22.19 or newer; this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  const { pathToFileURL } = await import('node:url');
  const { buildIfNeeded } = await import('./lib/build.mjs');
  const [program = ''] = process.argv.splice(2, 1);
  await import('./lib/typescript-loader.cjs');
  const { COMMAND_LINES } = await import('./lib/command-lines.ts');
  // A question, or what is not known, needs no build.
  COMMAND_LINES[program]?.parse();
  if (buildIfNeeded()) {
    await import(pathToFileURL(program).href);
  } else {
    process.exitCode = 1;
  }
}
