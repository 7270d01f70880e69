const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`Slipway needs Node.js 22.19 or newer; this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  const { buildIfNeeded } = await import('./lib/build.mjs');
  if (buildIfNeeded()) {
    process.setSourceMapsEnabled(true);
    // In this process, so that signals reach the service itself.
    await import('../dist/main.js');
  } else {
    process.exitCode = 1;
  }
}
