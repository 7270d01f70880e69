import { describe, expect, it } from '@jest/globals';
import { mkdir, readFile, realpath, symlink, writeFile } from 'node:fs/promises';
import { temporaryFolder } from '../../../test/support/temporary-folder.js';
import { nameWorkspace, parseWorkspaceName } from './tool-view.js';

const NAME = '/workspace/project';
const at = temporaryFolder();
const nameIt = async (from: string) => await nameWorkspace(at(from), { folder: at('project'), name: NAME });
const named = (from: string) => ({
  workspace: NAME,
  aliases: [{ name: at(from), folder: NAME }],
  fileRoots: ['/workspace', at('project')],
});
const unnamed = (from: string) => ({
  workspace: at(from),
  aliases: [{ name: NAME, folder: at(from) }],
  fileRoots: ['/workspace'],
});

describe('the workspace', () => {
  it.each(['workspace', 'sub/folder'])('is made when there is none, with a link at %s', async (from) => {
    expect(await nameIt(from)).toEqual(named(from));
    expect(await realpath(at(from))).toBe(at('project'));
  });

  it.each(['workspace', 'sub/folder'])('moves from %s with its files, once', async (from) => {
    await mkdir(at(from), { recursive: true });
    await writeFile(at(`${from}/a`), 'kept');
    expect(await nameIt(from)).toEqual(named(from));
    expect(await readFile(at('project/a'), 'utf8')).toBe('kept');
    expect(await readFile(at(`${from}/a`), 'utf8')).toBe('kept');
    expect(await nameIt(from)).toEqual(named(from));
  });

  it('is named where it is configured to be there already', async () => {
    expect(await nameIt('project')).toEqual(named('project'));
    const aliases = [{ name: at('project/sub'), folder: `${NAME}/sub` }];
    expect(await nameIt('project/sub')).toEqual({
      ...named('project'),
      workspace: `${NAME}/sub`,
      aliases,
    });
  });

  it('goes on after a start that ended between the move and the link', async () => {
    await mkdir(at('project'));
    expect(await nameIt('workspace')).toEqual(named('workspace'));
    expect(await realpath(at('workspace'))).toBe(at('project'));
  });

  it('stays where another folder has the name', async () => {
    await mkdir(at('workspace'));
    await mkdir(at('project'));
    expect(await nameIt('workspace')).toEqual(unnamed('workspace'));
  });

  it('stays where it is the whole volume', async () => {
    expect(await nameIt('.')).toEqual(unnamed('.'));
  });

  it('follows a link that is its old name', async () => {
    await mkdir(at('elsewhere'));
    await symlink('elsewhere', at('workspace'));
    expect(await nameIt('workspace')).toEqual(named('workspace'));
  });
});

describe('the variable', () => {
  it.each([
    [undefined, null],
    ['', null],
    ['/a/b:/c/d', { folder: '/a/b', name: '/c/d' }],
  ])('%j is %j', (text, expected) => {
    expect(parseWorkspaceName(text)).toEqual(expected);
  });

  it.each(['/a', 'a:/b', '/a:b', '/a:/b:/c'])('refuses %j', (text) => {
    expect(() => parseWorkspaceName(text)).toThrow('SLIPWAY_WORKSPACE_NAME');
  });
});
