import { loadConfig } from '../config/load-config.js';
import { runKeys } from './run-keys.js';

/** The program behind `npm run keys`. */
process.exitCode = await runKeys(process.argv.slice(2), loadConfig, {
  result: (line) => process.stdout.write(`${line}\n`),
  note: (line) => process.stderr.write(`${line}\n`),
});
