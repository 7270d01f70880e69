// Starts the service with the web application of OpenHands on its own origin: npm run web. The application is
// fetched from npm when it is first needed, and kept in a cache.
import { fileURLToPath } from 'node:url';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`Slipway needs Node.js 22.19 or newer; this is ${process.versions.node}\n`);
  process.exit(1);
}
const { installWebApp } = await import('./lib/web-app.mjs');
const { COMMAND_LINES } = await import('./lib/command-lines.ts');
const { install } = COMMAND_LINES['scripts/web.mjs'].parse().opts();

if (install === undefined) {
  const { runBuilt } = await import('./lib/run-built.mjs');
  const cache = fileURLToPath(new URL('../node_modules/.cache/slipway-web-app', import.meta.url));
  process.env['WEB_APP_FOLDER'] ||= installWebApp(cache);
  await runBuilt('service/main.js');
} else {
  process.stdout.write(`${installWebApp(install)}\n`);
}
