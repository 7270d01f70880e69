import { runBuilt } from './lib/run-built.mjs';

await runBuilt('service/slipway.js');
