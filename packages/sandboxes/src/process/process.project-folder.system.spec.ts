import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { startRequest } from '../../../agent-server/test/support/agent-server-client.js';
import { type SandboxClient, sandboxAnswers } from '../../../../test/support/sandbox-client.js';
import {
  describeInBubblewrap,
  type ProcessHarness,
  processHarness,
} from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;

describeInBubblewrap('/workspace/project in bubblewrap', () => {
  let harness: ProcessHarness;

  beforeEach(async () => {
    harness = await processHarness('bwrap');
  });

  afterEach(async () => {
    await harness.close();
  });

  const at = (id: string, ...names: string[]) => path.join(harness.options.folder, id, ...names);

  async function workingDir(client: SandboxClient, id: string): Promise<unknown> {
    const info: unknown = await (await client.send('GET', `/api/conversations/${id}`)).json();
    return jsonText(jsonAt(info, 'workspace'), 'working_dir');
  }

  it('is added to a sandbox of an earlier version, under whose path its files stay in reach', async () => {
    const launch = harness.launch();
    await harness.backend.start(launch, SIGNAL);
    let client = await sandboxAnswers(harness.backend, launch);
    const id = randomUUID();
    const request = startRequest({ conversation_id: id, workspace: { working_dir: 'repo' } });
    await client.send('POST', '/api/conversations', request);
    await harness.backend.pause(launch.id);
    // As it was: no folder beside the box, and the machine's path in the record.
    await rm(at(launch.id, 'shared'), { recursive: true, maxRetries: 10 });
    const old = at(launch.id, 'box/workspace/repo');
    const record = at(launch.id, 'box/conversations', id.replaceAll('-', ''), 'conversation.json');
    const text = await readFile(record, 'utf8');
    expect(text).toContain('/workspace/project/repo');
    await writeFile(record, text.replace('/workspace/project/repo', old));
    await writeFile(path.join(old, 'file'), 'kept');
    const { uid, gid } = await stat(old);
    await chown(path.join(old, 'file'), uid, gid);

    await harness.backend.resume(launch, SIGNAL);
    client = await sandboxAnswers(harness.backend, launch);
    expect(await workingDir(client, id)).toBe('/workspace/project/repo');
    for (const folder of [old, '/workspace/project/repo']) {
      expect(await client.run('pwd; cat file', folder)).toMatchObject({
        stdout: '/workspace/project/repo\nkept',
      });
      expect(await client.download(`${folder}/file`)).toBe('kept');
    }
    // Scripts may have the old path in them.
    expect((await client.run(`cat ${old}/file`)).stdout).toBe('kept');
  });

  it('is in a folder of the sandbox, below a root that nobody can write to', async () => {
    const launch = harness.launch();
    await harness.backend.start(launch, SIGNAL);
    const client = await sandboxAnswers(harness.backend, launch);
    const { stdout } = await client.run('touch /file; mkdir /folder; rmdir /workspace/project; ls -A /');
    const names = new Set(stdout.trim().split('\n'));
    expect(names).toContain('workspace');
    expect([...names].filter((name) => ['file', 'folder'].includes(name))).toEqual([]);
    expect((await client.run('ls -A /workspace')).stdout).toBe('project\n');
    await mkdir(at(launch.id, 'shared/other'));
    expect((await client.run('ls -A /workspace')).stdout).toBe('other\nproject\n');
  });
});
