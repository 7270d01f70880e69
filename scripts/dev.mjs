// What `npm run dev` does after each compilation.
await import('./bundle.mjs');
await import('../dist/main.js');
