import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from '@jest/globals';

const MODULE = new URL('end-processes.ts', import.meta.url).href;

it.each([
  ['nothing keeps it', ''],
  [
    'a listener and a timer keep it',
    `createServer().listen(0, '127.0.0.1'); setInterval(() => undefined, 1000);`,
  ],
])('ends a process with its status where %s', async (_, work) => {
  const program = `import { createServer } from 'node:net'; import { exitProcess } from '${MODULE}'; ${work} exitProcess(7);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' });
  expect(await once(child, 'exit')).toEqual([7, null]);
});
