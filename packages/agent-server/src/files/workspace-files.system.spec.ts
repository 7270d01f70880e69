import { beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { toolEnvironment } from '../tool-view.js';
import { WorkspaceFiles } from './workspace-files.js';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';

const folder = temporaryFolder();
let workspace: string;
let files: WorkspaceFiles;

beforeEach(async () => {
  workspace = folder('workspace');
  await mkdir(path.join(workspace, 'sub'), { recursive: true });
  await mkdir(folder('workspace-2'));
  await writeFile(folder('outside'), 'x');
  await symlink('../outside', path.join(workspace, 'link'));
  await symlink('..', path.join(workspace, 'up'));
  await symlink('sub', path.join(workspace, 'inner'));
  await symlink('../not-there', path.join(workspace, 'dangling'));
  await symlink('round', path.join(workspace, 'round'));
  files = new WorkspaceFiles({ environment: toolEnvironment(process.env), wrapper: [] }, [workspace]);
});

const text = (...pieces: string[]) => Readable.from(pieces.map((piece) => Buffer.from(piece)));

describe('paths', () => {
  it.each([
    ['workspace/a', 'workspace/a'],
    ['workspace/new/deep/a', 'workspace/new/deep/a'],
    ['workspace/inner/a', 'workspace/sub/a'],
    ['workspace/sub/../a', 'workspace/a'],
    ['workspace', 'workspace'],
    ['workspace/line\nbreak\n', 'workspace/line\nbreak\n'],
    ['workspace/$(touch x) `id` \'"*', 'workspace/$(touch x) `id` \'"*'],
    ['workspace/-rf', 'workspace/-rf'],
  ])('allows %j', async (given, expected) => {
    expect(await files.resolve(`${folder()}/${given}`)).toBe(folder(expected));
  });

  it.each([
    'outside',
    'workspace/../outside',
    'workspace/link',
    'workspace/up/outside',
    'workspace-2/a',
    'workspace/up/new',
    'workspace/dangling',
    'not-there/a',
  ])('refuses %s', async (given) => {
    const file = `${folder()}/${given}`;
    await expect(files.resolve(file)).rejects.toMatchObject({ failure: 'outside' });
    await expect(files.read(file, 10)).rejects.toMatchObject({ failure: 'outside' });
    await expect(files.view(file, 10)).rejects.toMatchObject({ failure: 'outside' });
    await expect(files.remove(file)).rejects.toMatchObject({ failure: 'outside' });
    await expect(files.write(file, text('y'))).rejects.toMatchObject({ failure: 'outside' });
    expect(await readFile(folder('outside'), 'utf8')).toBe('x');
    expect(await readdir(folder('workspace-2'))).toEqual([]);
  });

  it('says what is wrong with a file', async () => {
    await writeFile(path.join(workspace, 'large'), '12345678901');
    execFileSync('mkfifo', [path.join(workspace, 'pipe')]);
    const failure = async (name: string) =>
      await files.read(path.join(workspace, name), 10).then(
        () => null,
        ({ failure: reason }: { failure: unknown }) => reason,
      );
    expect(await failure('none')).toBe('missing');
    expect(await failure('none/a')).toBe('missing');
    expect(await failure('sub')).toBe('folder');
    expect(await failure('inner')).toBe('folder');
    expect(await failure('.')).toBe('folder');
    expect(await failure('large/a')).toBe('blocked');
    expect(await failure('large')).toBe('large');
    expect(await failure('pipe')).toBe('special');
    expect(await failure('round')).toBe('links');
  });
});

describe('writing', () => {
  it('runs nothing that a home or a variable names', async () => {
    await writeFile(folder('.bashrc'), `touch ${folder()}/trap`);
    const environment = { ...toolEnvironment(process.env), HOME: folder(), BASH_ENV: `${folder()}/.bashrc` };
    await new WorkspaceFiles({ environment, wrapper: [] }, [workspace]).write(`${workspace}/a`, text('x'));
    expect(await readdir(folder())).not.toContain('trap');
  });

  it('replaces a file in one step, keeps its mode, and makes the folders above a new one', async () => {
    const file = path.join(workspace, 'new/deep/a.sh');
    expect(await files.write(file, text('one', 'two'))).toEqual({ path: file, links: 1 });
    await chmod(file, 0o750);
    await files.write(file, text('three'));
    expect(await readFile(file, 'utf8')).toBe('three');
    expect((await stat(file)).mode & 0o777).toBe(0o750);
    expect(await readdir(path.dirname(file))).toEqual(['a.sh']);
  });

  it('leaves nothing of an incomplete content, and the old file unchanged', async () => {
    const file = path.join(workspace, 'sub/a');
    await writeFile(file, 'old');
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('half');
      throw new Error('the sender is gone');
    }
    await expect(files.write(file, broken())).rejects.toThrow('the sender is gone');
    expect(await readFile(file, 'utf8')).toBe('old');
    expect(await readdir(path.dirname(file))).toEqual(['a']);
  });

  it('reports a file system that is full', async () => {
    const view = {
      environment: toolEnvironment(process.env),
      wrapper: ['bash', '-c', 'ulimit -f 1; exec "$@"', 'x'],
    };
    const limited = new WorkspaceFiles(view, [workspace]);
    const file = path.join(workspace, 'sub/a');
    await expect(limited.write(file, text('x'.repeat(100_000)))).rejects.toMatchObject({
      failure: 'unwritable',
    });
    expect(await readdir(path.dirname(file))).toEqual([]);
  });
});

describe('reading', () => {
  it('streams as much as there was', async () => {
    const file = path.join(workspace, 'a');
    await writeFile(file, 'x'.repeat(300_000));
    const seen = await files.open(file, async ({ path: real, size, content }) => {
      let bytes = 0;
      for await (const chunk of content) {
        bytes += chunk.length;
      }
      return { real, size, bytes };
    });
    expect(seen).toEqual({ real: file, size: 300_000, bytes: 300_000 });
  });

  it('lists a folder two levels deep, up to a limit', async () => {
    await mkdir(path.join(workspace, 'sub/deep/deeper'), { recursive: true });
    await mkdir(path.join(workspace, 'node_modules/a'), { recursive: true });
    await writeFile(path.join(workspace, '.hidden'), '');
    const names = ['dangling', 'inner', 'link', 'node_modules/', 'round', 'sub/', 'sub/deep/', 'up'];
    expect(await files.view(workspace, 10)).toMatchObject({ kind: 'folder', names, isCut: false });
    execFileSync('bash', ['-c', 'touch sub/{1..1100}'], { cwd: workspace });
    const found = await files.view(workspace, 10);
    expect(found).toMatchObject({ kind: 'folder', isCut: true });
    expect(found.kind === 'folder' ? found.names.length : 0).toBe(1000);
  });

  it('does not trust a program with unexpected output', async () => {
    const view = (script: string) => ({
      environment: toolEnvironment(process.env),
      wrapper: ['bash', '-c', script, 'x'],
    });
    const answers = [
      'echo nonsense',
      'yes',
      "printf 'file\\0100\\0relative\\0'",
      "printf 'error\\0-5\\0__proto__\\0'",
      "printf 'file\\05\\0/a\\0abc'",
    ];
    for (const answer of answers) {
      const strange = new WorkspaceFiles(view(answer), [workspace]);
      await expect(strange.read(path.join(workspace, 'a'), 10)).rejects.toMatchObject({ failure: 'changed' });
    }
  });
});
