#!/usr/bin/env node
import nodeModule from 'node:module';
import 'reflect-metadata';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`Slipway needs Node.js 22.19 or newer; this is ${process.versions.node}\n`);
  process.exitCode = 1;
} else {
  // Saves a tenth of the start; has no effect where the folder cannot be written.
  nodeModule.enableCompileCache();
  // Source maps of our code only: those of everything in node_modules would take 20 MB.
  nodeModule.setSourceMapsSupport(true);
  // A dynamic import makes sure that the import above has run first, in a bundle too.
  const { runSlipway } = await import('./slipway-program.js');
  // The service decides for itself what its process ends with.
  process.exitCode = (await runSlipway(process.argv.slice(2))) || process.exitCode;
}
