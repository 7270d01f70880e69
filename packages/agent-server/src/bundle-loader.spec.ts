import { describe, expect, it } from '@jest/globals';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Script } from 'node:vm';
import { CODE_CACHE, loadBundle } from './bundle-loader.js';
import { temporaryFolder } from '../../../test/support/temporary-folder.js';

const folder = temporaryFolder();

async function write(name: string, code: string | Buffer): Promise<string> {
  const file = folder(name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, code);
  return file;
}

describe('loadBundle', () => {
  it('returns what a file exports, with what it requires of the bundle and of Node.js', async () => {
    await write('chunks/name.js', "exports.name = 'ada';");
    const entry = await write(
      'program.js',
      "const { sep } = require('node:path'); exports.is = sep + require('./chunks/name.js').name;",
    );
    expect(loadBundle(entry)).toEqual({ is: '/ada' });
  });

  it('loads a file once, also when files require each other', async () => {
    await write('a.js', "exports.count = (exports.count ?? 0) + 1; exports.b = require('./b.js');");
    await write('b.js', "exports.seen = require('./a.js').count;");
    const entry = await write('program.js', "require('./a.js'); module.exports = require('./a.js');");
    expect(loadBundle(entry)).toEqual({ count: 1, b: { seen: 1 } });
  });

  it('tells a file its name and its folder, and has them in stack traces', async () => {
    const entry = await write(
      'program.js',
      "module.exports = [__filename, __dirname, new Error('here').stack];",
    );
    const [filename, dirname, stack] = Object(loadBundle(entry));
    expect([filename, dirname]).toEqual([entry, folder()]);
    expect(stack).toContain(`${entry}:1`);
  });

  it('tries again to load a file that could not be loaded', async () => {
    const entry = await write(
      'program.js',
      "exports.load = () => require('./later.js'); try { exports.load(); } catch (error) { exports.code = error.code; }",
    );
    const { load, code } = Object(loadBundle(entry));
    expect(code).toBe('ENOENT');
    await write('later.js', "exports.name = 'ada';");
    expect(load()).toEqual({ name: 'ada' });
  });

  it('runs the code that a cache was recorded from', async () => {
    const entry = await write('program.js', 'exports.sum = [1, 2].reduce((a, b) => a + b);');
    const wrapped = `(function (exports, require, module, __filename, __dirname) {exports.sum = [1, 2].reduce((a, b) => a + b);\n})`;
    await write(`program.js${CODE_CACHE}`, new Script(wrapped).createCachedData());
    expect(loadBundle(entry)).toEqual({ sum: 3 });
  });

  it.each([
    ['empty', ''],
    ['of another version', 'not what V8 writes'],
  ])('compiles the code when its cache is %s', async (_what, cache) => {
    const entry = await write('program.js', "exports.code = 'compiled';");
    await write(`program.js${CODE_CACHE}`, cache);
    expect(loadBundle(entry)).toEqual({ code: 'compiled' });
  });
});
