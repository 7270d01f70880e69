import 'reflect-metadata';
import { loadConfig } from '../config/load-config.js';

// A dynamic import makes sure that the imports above have run first, in a bundle too.
const { runKeys } = await import('./keys-commands.js');

/** The program behind `npm run keys`. */
process.exitCode = await runKeys(process.argv.slice(2), loadConfig);
