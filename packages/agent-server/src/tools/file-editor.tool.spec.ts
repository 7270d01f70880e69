import { beforeEach, describe, expect, it } from '@jest/globals';
import { chmod, link, mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toolEnvironment } from '../tool-view.js';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';
import { fileEditorTool } from './file-editor.tool.js';
import type { Tool } from './tool.js';

const outer = temporaryFolder();
let folder: string;
let tool: Tool;

beforeEach(async () => {
  folder = outer('work');
  await mkdir(folder);
  tool = fileEditorTool({ environment: toolEnvironment(process.env), wrapper: [] });
});

const view = async (path: string, members: object = {}) => await edit({ command: 'view', path, ...members });
const create = async (path: string, file_text: string) => await edit({ command: 'create', path, file_text });
const saved = async (name: string): Promise<string> => await readFile(join(folder, name), 'utf8');
const save = async (name: string, text: string): Promise<void> => await writeFile(join(folder, name), text);

async function edit(input: Record<string, unknown>) {
  const observation = await tool.prepare(input).run({
    workingDir: folder,
    environment: {},
    signal: new AbortController().signal,
  });
  const [content] = observation.content;
  return { ...observation, text: content?.type === 'text' ? content.text : '' };
}

describe('the file editor', () => {
  it('knows a folder by its other name', async () => {
    const aliases = [{ name: '/workspace/project', folder }];
    tool = fileEditorTool({ environment: toolEnvironment(process.env), wrapper: [], aliases });
    const file = '/workspace/project/a.txt';
    expect(await create(file, 'one\n')).toMatchObject({
      is_error: false,
      path: join(folder, 'a.txt'),
    });
    expect((await view(file)).text).toContain('one');
    expect(await view('/workspace/project/../a.txt')).toMatchObject({ is_error: true });
  });

  it('reads ~ as the home that the shell has, inside of the workspace or not', async () => {
    const at = (home: string) =>
      fileEditorTool({ environment: { ...toolEnvironment(process.env), HOME: home }, wrapper: [] });
    tool = at(folder);
    expect(await create('~/a.txt', 'one')).toMatchObject({ is_error: false });
    expect(await saved('a.txt')).toBe('one');
    tool = at(outer());
    expect((await create('~/b.txt', 'x')).text).toContain('not inside the workspace');
    expect(await create('c~/~d', 'two')).toMatchObject({ is_error: false });
    expect(await saved('c~/~d')).toBe('two');
  });

  it('edits what lies in the work area, such as another working tree, and nothing beyond', async () => {
    await mkdir(outer('area/project'), { recursive: true });
    await mkdir(outer('area/two'));
    await symlink(outer('secret'), outer('area/two/link'));
    await writeFile(outer('secret'), 'secret');
    folder = outer('area/project');
    tool = fileEditorTool({ environment: toolEnvironment(process.env), wrapper: [] }, outer('area'));
    expect(await create('../two/a.txt', 'x')).toMatchObject({
      is_error: false,
      path: outer('area/two/a.txt'),
    });
    for (const path of ['../../secret', '../two/link', '../two/../../b.txt']) {
      expect((await create(path, 'x')).text).toContain('not inside the workspace');
    }
    expect(await readFile(outer('secret'), 'utf8')).toBe('secret');
  });

  it('tells what the repository says about a file with the result', async () => {
    const asked: string[] = [];
    tool = fileEditorTool({ environment: toolEnvironment(process.env), wrapper: [] }, null, async (file) => {
      asked.push(file);
      return asked.length === 1 ? 'Use tabs.' : null;
    });
    expect((await create('a.txt', 'x')).text).toContain('a.txt.\nUse tabs.');
    expect((await view('a.txt')).text).not.toContain('Use tabs.');
    expect(asked).toEqual([join(folder, 'a.txt'), join(folder, 'a.txt')]);
  });

  it('creates a file and the folders above it, lists them, and undoes that', async () => {
    expect(await create('a/b.txt', 'one\n')).toMatchObject({
      is_error: false,
      prev_exist: false,
      old_content: null,
      new_content: 'one\n',
      path: join(folder, 'a/b.txt'),
    });
    expect((await view('.')).text).toBe('a/\na/b.txt');
    expect(await edit({ command: 'undo_edit', path: join(folder, 'a/b.txt') })).toMatchObject({
      is_error: false,
    });
    await expect(stat(join(folder, 'a/b.txt'))).rejects.toThrow('ENOENT');
  });

  it('shows lines with numbers, all or some', async () => {
    await save('a.txt', 'one\r\ntwo\nthree');
    expect((await view('a.txt')).text).toBe('     1\tone\n     2\ttwo\n     3\tthree');
    expect((await view('a.txt', { view_range: [2, -1] })).text).toBe('     2\ttwo\n     3\tthree');
    expect((await view('a.txt', { view_range: [2, 2] })).text).toBe('     2\ttwo');
    expect(await view('a.txt', { view_range: [9, 10] })).toMatchObject({ is_error: true });
  });

  it('replaces text that occurs once, keeps the mode, shows the lines', async () => {
    const file = join(folder, 'run.sh');
    await writeFile(file, 'a\nb\nc\n');
    await chmod(file, 0o755);
    const result = await edit({ command: 'str_replace', path: 'run.sh', old_str: 'b', new_str: '$& B' });
    expect(result).toMatchObject({ old_content: 'a\nb\nc\n', new_content: 'a\n$& B\nc\n', prev_exist: true });
    expect(result.text).toContain('     2\t$& B');
    expect((await stat(file)).mode & 0o777).toBe(0o755);
  });

  it.each([
    [{ old_str: 'x', new_str: 'y' }, /more than once \(lines 1, 3\)/],
    [{ old_str: '', new_str: 'y' }, /empty/],
    [{ new_str: 'y' }, /needs old_str/],
  ])('does not replace %j', async (input, reason) => {
    await save('a.txt', 'x\n.\nx\n');
    const result = await edit({ command: 'str_replace', path: 'a.txt', ...input });
    expect(result.is_error).toBe(true);
    expect(result.text).toMatch(reason);
    expect(await saved('a.txt')).toBe('x\n.\nx\n');
  });

  it('inserts lines', async () => {
    await save('a.txt', 'one\ntwo');
    const insert = { command: 'insert', path: 'a.txt', new_str: 'zero' };
    await edit({ ...insert, insert_line: 0 });
    expect(await saved('a.txt')).toBe('zero\none\ntwo');
    expect(await edit({ ...insert, insert_line: 9 })).toMatchObject({ is_error: true });
  });

  it('undoes edits one by one, but no change by others', async () => {
    await save('a.txt', '1');
    await create('a.txt', '2');
    await create('a.txt', '3');
    await edit({ command: 'undo_edit', path: 'a.txt' });
    expect(await saved('a.txt')).toBe('2');
    await save('a.txt', 'mine');
    expect((await edit({ command: 'undo_edit', path: 'a.txt' })).text).toContain('was changed since');
    expect(await saved('a.txt')).toBe('mine');
  });

  it.each<[string, BufferEncoding, string, string]>([
    ['Windows-1252 (Latin-1)', 'latin1', 'größer\r\nzwei\r\n', 'größer\r\ndrei é\r\n'],
    ['UTF-16 (little endian)', 'utf16le', '\uFEFFgrößer\nzwei\n', '\uFEFFgrößer\ndrei é\n'],
  ])(
    'reads and writes a text in its own encoding, and says so once: %s',
    async (name, encoding, old, changed) => {
      const file = join(folder, 'a.txt');
      await writeFile(file, old, encoding);
      const note = `\n[${file} is ${name}, and is written so]`;
      expect((await view('a.txt')).text).toBe(`     1\tgrößer\n     2\tzwei${note}`);
      const replaced = { command: 'str_replace', path: 'a.txt', old_str: 'zwei', new_str: 'drei é' };
      const edited = await edit(replaced);
      expect(edited).toMatchObject({ is_error: false, new_content: changed });
      expect(edited.text).not.toContain(name);
      expect(await readFile(file, encoding)).toBe(changed);
      await create('a.txt', 'neu\n');
      expect(await readFile(file, encoding)).toBe(old.startsWith('\uFEFF') ? '\uFEFFneu\n' : 'neu\n');
      await edit({ command: 'undo_edit', path: 'a.txt' });
      expect(await readFile(file, encoding)).toBe(changed);
    },
  );

  it('refuses a character that the encoding of a file does not have', async () => {
    await writeFile(join(folder, 'a.txt'), 'größer\n', 'latin1');
    const { text } = await create('a.txt', 'größer ≥\n');
    expect(text).toContain('is Windows-1252 (Latin-1), which has no "≥". Nothing was changed');
    expect(await readFile(join(folder, 'a.txt'), 'latin1')).toBe('größer\n');
  });

  it('keeps the other names of a file', async () => {
    await save('a.txt', 'a long first text');
    await link(join(folder, 'a.txt'), join(folder, 'b.txt'));
    const { ino } = await stat(join(folder, 'a.txt'));
    const change = (text: string) => create('a.txt', text);
    expect((await change('short')).text).toContain(
      'has 2 names (hard links), which all show what was written]',
    );
    expect((await change('next')).text).not.toContain('hard links');
    expect([await saved('b.txt'), (await stat(join(folder, 'a.txt'))).ino]).toEqual(['next', ino]);
    expect(await readdir(folder)).toEqual(['a.txt', 'b.txt']);
  });

  it('shows a picture, unless it is too large', async () => {
    const png = Buffer.from('iVBORw0KGgoAAAANSUhEUg==', 'base64');
    await writeFile(join(folder, 'a.png'), png);
    await writeFile(join(folder, 'large.png'), Buffer.concat([png, Buffer.alloc(4 * 1024 * 1024)]));
    expect((await view('a.png')).content).toEqual([
      { type: 'text', text: 'A picture (image/png, 16 bytes):' },
      { type: 'image', image_urls: [`data:image/png;base64,${png.toString('base64')}`] },
    ]);
    const { content, text } = await view('large.png');
    expect([content.length, text]).toEqual([1, expect.stringContaining('make a smaller copy')]);
    expect(await create('a.png', '')).toMatchObject({ is_error: true });
  });

  it('rejects binary and large files', async () => {
    await writeFile(join(folder, 'bin'), Buffer.from([1, 0, 2]));
    await save('large', '');
    await truncate(join(folder, 'large'), 6 * 1024 * 1024);
    expect((await view('bin')).text).toContain('binary');
    expect((await view('large')).text).toContain('use the terminal');
    expect(await create('bin', '')).toMatchObject({ is_error: true });
  });

  it('follows links that stay inside, and a workspace that is itself a link', async () => {
    await save('real.txt', 'x');
    await symlink('real.txt', join(folder, 'alias.txt'));
    await symlink(folder, outer('alias'));
    folder = outer('alias');
    await edit({ command: 'create', path: join(folder, 'alias.txt'), file_text: 'y' });
    expect(await saved('real.txt')).toBe('y');
  });

  it('reports what is missing', async () => {
    expect((await view('none')).text).toContain('does not exist');
    expect((await edit({ command: 'create', path: 'none' })).text).toContain('needs file_text');
  });
});
