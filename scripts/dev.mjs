// What `npm run dev` does after each compilation.
await import('./bundle-agent-server.mjs');
await import('../dist/main.js');
