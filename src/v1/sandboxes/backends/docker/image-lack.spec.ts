import { expect, it } from '@jest/globals';
import { imageLack } from './image-lack.js';

const NODE = '/opt/slipway/bin/node';

// As Debian's engine, its init and glibc's loader say it.
it.each([
  [
    `[FATAL tini (6)] exec ${NODE} failed: No such file or directory`,
    'it has no glibc (Alpine has musl instead)',
  ],
  [`[FATAL tini (7)] exec ${NODE} failed: Exec format error`, 'it is for another kind of processor'],
  [
    `${NODE}: error while loading shared libraries: libstdc++.so.6: cannot open shared object file: No such file or directory`,
    'it lacks libstdc++.so.6',
  ],
  [
    `${NODE}: /lib64/libc.so.6: version \`GLIBC_2.27' not found (required by ${NODE})\n${NODE}: /lib64/libc.so.6: version \`GLIBC_2.28' not found (required by ${NODE})`,
    'its libraries are too old, they lack GLIBC_2.27',
  ],
])('reads %j', (log, lack) => {
  expect(imageLack(`${log}\n`, 'a:1')).toContain(
    `The image a:1 cannot run our agent server: ${lack}. It takes`,
  );
});

it.each(['', 'listening on 8000\n', 'python: error while loading shared libraries: libz.so.1\n'])(
  'blames no image for %j',
  (log) => {
    expect(imageLack(log, 'a:1')).toBeNull();
  },
);
