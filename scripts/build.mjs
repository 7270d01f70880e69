import { build } from './lib/build.mjs';
import { COMMAND_LINES } from './lib/command-lines.ts';

COMMAND_LINES['scripts/build.mjs'].parse();
process.exitCode = build() ? 0 : 1;
