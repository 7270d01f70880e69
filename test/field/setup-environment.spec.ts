import { beforeEach, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SETUP_ENVIRONMENT } from '@slipway/agent-protocol/git.js';
import { AcpEngine } from '../../packages/agent-server/src/engine/acp/acp.engine.js';
import { NativeEngine } from '../../packages/agent-server/src/engine/native/native.engine.js';
import { toolEnvironment } from '../../packages/agent-server/src/tool-view.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { SETUP_SCRIPT, setupVariables } from '../../src/v1/app-conversations/start/set-up.step.js';
import {
  engineSettings,
  MemoryEngineHost,
  scriptedAgent,
} from '../../packages/agent-server/test/fakes/memory-engine-host.js';
import { call, say } from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import { answersOf } from '../../packages/agent-server/test/field/native-agent.js';

const run = promisify(execFile);
const environment = toolEnvironment(process.env);
const never = new AbortController().signal;

const outer = temporaryFolder();
let folder: string;
beforeEach(async () => {
  folder = await repository('project');
});

async function repository(name: string): Promise<string> {
  await run('git', ['init', '-q', outer(name)]);
  return outer(name);
}

/** Runs the setup script as a start does. */
async function setUp(script: string, at = folder, secrets: Record<string, string> = {}): Promise<void> {
  await mkdir(path.join(at, '.openhands'), { recursive: true });
  await writeFile(path.join(at, '.openhands/setup.sh'), script);
  await run('bash', ['-c', SETUP_SCRIPT], {
    cwd: at,
    env: { ...environment, ...setupVariables(new Map(Object.entries(secrets))) },
  });
}

/** The output of commands of the agent, each in the shell of the one before. */
async function outputs(
  commands: string[],
  { secrets = {}, wrapper = [], at = folder }: { secrets?: object; wrapper?: string[]; at?: string } = {},
): Promise<unknown[]> {
  const llm = await ScriptedLlm.start(
    inOrder(...commands.map((command) => call('terminal', { command })), say('done')),
  );
  const engine = new NativeEngine({ view: { environment, wrapper } });
  const host = new MemoryEngineHost(engineSettings(at, llm.url));
  host.secrets = { ...secrets };
  await host.say('Please do it.');
  await engine.run(host, never);
  await engine.close();
  await llm.close();
  return host.ofKind('ObservationEvent').map(({ observation: { content } }) => {
    const [part] = content;
    return part?.type === 'text' ? part.text.replace(/\n?\[[^[]*\]$/, '') : null;
  });
}

async function kept(at = folder): Promise<string> {
  return await readFile(path.join(at, '.git', SETUP_ENVIRONMENT), 'utf8');
}

// OpenHands/OpenHands#13285: the setup script runs in a process of its own, and its exports end with that.
describe("the agent's shell has what the setup script exports", () => {
  it('variables, and programs by their name, from any folder', async () => {
    await setUp(
      `set -eu
mkdir -p tools sub && printf '#!/bin/sh\\necho made by setup\\n' > tools/made && chmod +x tools/made
export PATH="tools:$PATH"
export QUOTED="it's \\"a\\" \\$HOME" LINES_OF='one
two'
NOT_EXPORTED=1
cd sub`,
    );
    const [first, second] = await outputs([
      'made; pwd',
      'cd sub && made && printf "%s|%s|%s" "$QUOTED" "$LINES_OF" "${NOT_EXPORTED-none}"',
    ]);
    expect(first).toBe(`made by setup\n${folder}`);
    expect(second).toBe(`made by setup\nit's "a" $HOME|one\ntwo|none`);
  });

  it('in each new shell, with the exit code of its own command', async () => {
    await setUp('export HELLO=there');
    const [, , second] = await outputs(['export HELLO=changed', 'exit 1', 'echo "$?$HELLO"']);
    expect(second).toBe('0there');
  });

  const ENDINGS = [
    ['exit', 'export HELLO=there\nexit 0'],
    ['a trap of its own', "trap 'echo bye' EXIT\nexport HELLO=there"],
    ['everything exported', 'set -a\nline=1 name=2\nHELLO=there'],
    ['a PATH without programs', 'export HELLO=there\nPATH=/nowhere\nexit'],
    ['a return', 'export HELLO=there\nreturn 0'],
    ['other separators', 'IFS=/\nset -f -o posix\nexport HELLO=there'],
  ] as const;
  it('with a script that ends with an exit, a trap, a return, or in another state', async () => {
    const seen = await Promise.all(
      ENDINGS.map(async ([name, script]) => {
        const at = await repository(name);
        await setUp(script, at);
        return [name, ...(await outputs(['builtin echo "$HELLO"'], { at })), await kept(at)];
      }),
    );
    const clean: unknown = expect.not.stringContaining('slipway');
    expect(seen).toEqual(ENDINGS.map(([name]) => [name, 'there', clean]));
  });

  it('but for variables of the conversation, such as secrets', async () => {
    await setUp('export TOKEN=dummy OTHER=set');
    expect(await outputs(['echo $TOKEN $OTHER'], { secrets: { TOKEN: 'of the user' } })).toEqual([
      'of the user set',
    ]);
  });

  it('and an agent of others has it too', async () => {
    await setUp('export HELLO=there TOKEN=dummy');
    const engine = new AcpEngine({ environment, wrapper: [] });
    const host = new MemoryEngineHost(engineSettings(folder, '', { acp: scriptedAgent(folder) }));
    host.secrets = { TOKEN: 'of the user' };
    for (const name of ['HELLO', 'TOKEN']) {
      await host.say(`env ${name}`);
      await engine.run(host, never);
    }
    await engine.close();
    expect(answersOf(host)).toEqual(['HELLO=there', 'TOKEN=of the user']);
  });
});

describe('an environment that is hostile', () => {
  it('is bounded', async () => {
    await setUp(
      `export HUGE="$(head -c 40000 /dev/zero | tr '\\0' x)"
for i in $(seq 20); do export "MANY_$i=$(head -c 20000 /dev/zero | tr '\\0' y)"; done
export SMALL=1`,
    );
    expect((await kept()).length).toBeLessThan(140_000);
    expect(await outputs(['echo "${HUGE-none}" ${#MANY_1}'])).toEqual(['none 20000']);
  });

  it('does not reach the programs that isolate tools', async () => {
    await setUp('export LD_PRELOAD=/nowhere.so NODE_OPTIONS=--require=/nowhere.js');
    const wrapper = ['bash', '-c', 'echo "wrapped:$LD_PRELOAD" >>wrapped.txt; exec "$@"', 'wrap'];
    await outputs(['true'], { wrapper });
    expect(new Set((await readFile(path.join(folder, 'wrapped.txt'), 'utf8')).split('\n'))).toEqual(
      new Set(['wrapped:', '']),
    );
  });

  it('that an agent wrote into the file ends at most its own shell', async () => {
    await setUp('export HELLO=there');
    await writeFile(path.join(folder, '.git', SETUP_ENVIRONMENT), 'A=$(\nB=1\nreadonly=\n\0=\nUID=0\nC=3\n');
    expect(await outputs(['echo "$B$C"'])).toEqual(['13']);
  });
});

it.each([
  ['changes how bash quotes', 'export LC_ALL=C.UTF-8', { TOKEN: 'pässword' }],
  [
    'makes room',
    'unset A',
    { ...Object.fromEntries('ABCDE'.split('').map((name) => [name, 'x'.repeat(30_000)])), TOKEN: 'y' },
  ],
  ['changes it', 'TOKEN="$TOKEN/"', { TOKEN: 'z' }],
  ['forgets which there are', 'unset SLIPWAY_SETUP_SECRETS; export TOKEN+=" "', { TOKEN: 'z' }],
])('no secret of the setup is kept where the script %s', async (_what, script, secrets) => {
  await setUp(`${script}\nexport HELLO=there`, folder, secrets);
  expect(await kept()).toMatch(/^HELLO=there$/m);
  expect(await kept()).not.toMatch(/^[A-E]=|TOKEN/m);
});

it('a script that fails leaves nothing, and the exit code is its own', async () => {
  await expect(setUp('export HELLO=there\nexit 4')).rejects.toMatchObject({ code: 4 });
  await expect(kept()).rejects.toThrow('ENOENT');
  await expect(setUp('set -e\nexport HELLO=there\nfalse')).rejects.toMatchObject({ code: 1 });
});

it('a script runs once, as the file that it is', async () => {
  const script = 'echo "$0 ${BASH_SOURCE[0]} $#" >>ran.txt\nexport HELLO=there\n';
  await setUp(script);
  await setUp(script);
  expect(await readFile(path.join(folder, 'ran.txt'), 'utf8')).toBe(
    '.openhands/setup.sh .openhands/setup.sh 0\n',
  );
});
