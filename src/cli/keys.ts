import 'reflect-metadata';
import { loadConfig } from '../config/load-config.js';

// In a bundle, the imports above have run only when this is imported here.
const { runKeys } = await import('./keys-commands.js');

/** The program behind `npm run keys`. */
process.exitCode = await runKeys(process.argv.slice(2), loadConfig);
