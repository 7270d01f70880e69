import { beforeEach, describe, expect, it } from '@jest/globals';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import request from 'supertest';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { ConversationRows } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { useAgentSandboxes } from '../support/use-agent-sandboxes.js';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp();
const rows = new ConversationRows(app);
const sandboxes = useAgentSandboxes(app);
let user: TestUser;
let sandbox: Sandbox;
let id: string;
let folder: string;

beforeEach(async () => {
  user = await app.createUser();
  ({ sandbox, folder } = await sandboxes.open(user.id));
  ({ hex: id } = await rows.conversation(user.id, { sandboxId: sandbox.id, workingDir: folder }));
});

const get = (route: string): request.Test =>
  request(app.url).get(`/api/v1/app-conversations/${id}/${route}`).set(user.headers);

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

describe('files', () => {
  it('are all that people read, in order and relative to the folder', async () => {
    await write({
      'src/b.ts': '',
      'README.md': '',
      '.openhands/setup.sh': '',
      'node_modules/x/y.js': '',
      'a b.txt': '',
    });
    await symlink('/etc/passwd', path.join(folder, 'link'));

    const all = ['.openhands/setup.sh', 'README.md', 'a b.txt', 'src/b.ts'];
    expect((await get('files').expect(200)).body).toEqual(all);
    expect((await get(`files?path=${folder}`).expect(200)).body).toEqual(all);
    expect((await get('files?path=src').expect(200)).body).toEqual(['b.ts']);
    expect((await get('files?path=README.md').expect(200)).body).toEqual([]);
  });
});

describe('skills', () => {
  it('are those that the repository has for agents, but for those that the settings disable', async () => {
    await write({
      'AGENTS.md': 'Run the tests.',
      '.openhands/microagents/changes.md': '---\nname: changes\ntriggers:\n- changelog\n---\nOne line each.',
    });

    const { body } = await get('skills').expect(200);

    expect(body.skills).toHaveLength(2);
    expect(body.skills).toContainEqual({
      name: 'changes',
      type: 'knowledge',
      content: expect.stringContaining('One line each.'),
      triggers: ['changelog'],
    });
    expect(body.skills).toContainEqual(
      expect.objectContaining({
        type: 'repo',
        content: expect.stringContaining('Run the tests.'),
        triggers: [],
      }),
    );

    const disable = (names: string[] | null) =>
      request(app.url)
        .post('/api/v1/settings')
        .set(user.headers)
        .send({ disabled_skills: names })
        .expect(200);
    const names = async (): Promise<string[]> =>
      (await get('skills').expect(200)).body.skills.map(({ name }: { name: string }) => name);
    const all = await names();

    await disable(['changes', 'never-seen']);
    expect(await names()).toEqual(all.filter((name) => name !== 'changes'));

    await disable(null);
    expect(await names()).toEqual(all);
  });
});

describe('hooks', () => {
  it('are those of the file as it is now', async () => {
    expect((await get('hooks').expect(200)).body).toEqual({ hooks: [] });

    await write({
      '.openhands/hooks.json': JSON.stringify({
        stop: [{ matcher: '*', hooks: [{ command: 'check.sh', timeout: 5 }] }],
      }),
    });

    expect((await get('hooks').expect(200)).body).toEqual({
      hooks: [
        {
          event_type: 'stop',
          matchers: [
            { matcher: '*', hooks: [{ type: 'command', command: 'check.sh', timeout: 5, async: false }] },
          ],
        },
      ],
    });
  });
});

describe('a conversation whose sandbox does not run', () => {
  it('has no skills and no hooks, and its files cannot be listed', async () => {
    await app.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL WHERE id = $1`, [
      sandbox.id,
    ]);

    expect((await get('skills').expect(200)).body).toEqual({ skills: [] });
    expect((await get('hooks').expect(200)).body).toEqual({ hooks: [] });
    expect((await get('files').expect(409)).body.code).toBe('sandbox_not_running');
  });
});
