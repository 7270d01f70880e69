// Writes docs/configuration.md from the code: npm run docs:configuration. A test fails while the file is not current.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { buildIfNeeded } from './lib/build.mjs';
import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/configuration.mjs'].parse();
if (buildIfNeeded()) {
  const { configurationReference } = await import('../dist/config/load-config.js');
  await writeFile(
    fileURLToPath(new URL('../docs/configuration.md', import.meta.url)),
    configurationReference(),
  );
} else {
  process.exitCode = 1;
}
