// Writes docs/configuration.md from the code: npm run docs:configuration. A test fails while the file is not current.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/configuration.mjs'].parse();
await import('./lib/typescript-loader.cjs');
const { configurationReference } = await import('../src/config/load-config.ts');
await writeFile(
  fileURLToPath(new URL('../docs/configuration.md', import.meta.url)),
  configurationReference(),
);
