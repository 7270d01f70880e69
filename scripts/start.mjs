const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`Slipway needs Node.js 22.19 or newer; this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  const { default: nodeModule } = await import('node:module');
  const { buildIfNeeded, compileCache } = await import('./lib/build.mjs');
  if (buildIfNeeded()) {
    // Saves a tenth of the start; where the folder cannot be written it does nothing.
    nodeModule.enableCompileCache(compileCache);
    process.setSourceMapsEnabled(true);
    // In this process, so that signals reach the service itself.
    await import('../dist/main.js');
  } else {
    process.exitCode = 1;
  }
}
