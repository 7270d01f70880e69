// The service from its sources, as npm run dev starts it.
import { setSourceMapsSupport } from 'node:module';
import './typescript-loader.cjs';

// Of our code only: the source maps of packages would take a quarter of the start.
setSourceMapsSupport(true);
await import('../../src/main.ts');
