// The service from its sources, as npm run dev starts it.
import { setSourceMapsSupport } from 'node:module';

// Only our code gets source maps: those of packages would take a quarter of the start.
setSourceMapsSupport(true);
await import('./typescript-loader.cjs');
await import('../../src/main.ts');
