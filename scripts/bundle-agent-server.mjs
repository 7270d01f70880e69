// Joins the compiled agent server and its packages into few files: loading hundreds takes longer than running them.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiled = path.join(root, 'dist/agent-server');
const target = path.join(root, 'dist/bundle/agent-server');

const bundle = await rolldown({
  cwd: root,
  platform: 'node',
  input: {
    main: path.join(compiled, 'main.js'),
    'relay.main': path.join(compiled, 'relay.main.js'),
  },
  // A warning that nobody reads is a bundle that fails in a sandbox.
  onLog: (level, log) => {
    if (level === 'warn') {
      throw new Error(log.message);
    }
  },
});
// Files of earlier builds stay: servers that still run may load theirs later.
await bundle.write({
  dir: target,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name]-[hash].js',
});
await bundle.close();
mkdirSync(target, { recursive: true });
// In an image nothing above says that these are ES modules.
writeFileSync(path.join(target, 'package.json'), '{ "type": "module" }\n');
