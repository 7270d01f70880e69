const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

/**
 * Builds if something changed since the last build, then runs a program of `dist` in this process, so that signals
 * reach it. The exit status is 1 when the build fails.
 *
 * @param {string} program path in `dist`, such as `main.js`
 * @param {string | undefined} takesNone the script of package.json that runs it, where it takes no arguments: loading what would say
 *   so costs a tenth of the start
 */
export async function runBuilt(program, takesNone) {
  if (major < 22 || (major === 22 && minor < 19)) {
    process.stderr.write(`Slipway needs Node.js 22.19 or newer; this is ${process.versions.node}\n`);
    process.exitCode = 1;
    return;
  }
  // Loaded only now, because an older Node could not parse them.
  if (takesNone !== undefined && process.argv.length > 2) {
    const { COMMAND_LINES } = await import('./command-lines.ts');
    COMMAND_LINES[takesNone].parse();
  }
  const { default: nodeModule } = await import('node:module');
  const { buildIfNeeded, compileCache } = await import('./build.mjs');
  if (!buildIfNeeded()) {
    process.exitCode = 1;
    return;
  }
  // Saves a tenth of the start; has no effect if the folder cannot be written.
  nodeModule.enableCompileCache(compileCache);
  // Source maps of our code only: those of everything in node_modules would take 20 MB.
  nodeModule.setSourceMapsSupport(true);
  await import(`../../dist/${program}`);
}
