import { build } from './lib/build.mjs';

process.exitCode = build() ? 0 : 1;
