import { describe, expect, it } from '@jest/globals';
import { submoduleUrl } from './clone-parts.js';

describe('submoduleUrl', () => {
  it.each([
    ['../lib.git', 'https://git.example.com/team/lib.git'],
    ['./lib.git', 'https://git.example.com/team/app.git/lib.git'],
    ['../../other/lib', 'https://git.example.com/other/lib'],
    ['../../../../lib', 'https://git.example.com/lib'],
    ['https://git.example.com/x/y.git', 'https://git.example.com/x/y.git'],
    ['https://user:word@git.example.com/x/y.git', 'https://git.example.com/x/y.git'],
    ['git@git.example.com:x/y.git', 'https://git.example.com/x/y.git'],
    ['ssh://git@git.example.com:2222/x/y.git', 'https://git.example.com/x/y.git'],
  ])('takes %s', (url, address) => {
    expect(submoduleUrl(url, 'https://git.example.com/team/app.git')).toBe(address);
  });

  it.each([
    ...' lib /etc file:///etc --upload-pack=id //other.example.com/x git@other.example.com:x/y.git'.split(
      ' ',
    ),
    ...'https://other.example.com/x https://git.example.com:8443/x http://git.example.com/x'.split(' '),
    ...'https://git.example.com@169.254.169.254/latest http://169.254.169.254/latest/meta-data'.split(' '),
    ...'http://127.0.0.1/ ssh://git@other.example.com/x git://git.example.com/x ../\u0000'.split(' '),
    'ext::sh -c id',
  ])('leaves out %j', (url) => {
    const address = submoduleUrl(url, 'https://git.example.com/team/app.git');
    expect(address === null || new URL(address).origin === 'https://git.example.com').toBe(true);
    expect(address ?? '').not.toMatch(/other|etc|id$|127|169/);
  });
});
