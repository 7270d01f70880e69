import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pastDeadline } from '../../../../test/support/past-deadline.js';
import { until } from '../../../../test/support/until.js';
import { toolEnvironment } from '../tool-view.js';
import { ShellSession } from './shell-session.js';
import { terminalTool } from './terminal.tool.js';
import type { Tool } from './tool.js';
import { processLives } from '../../../../test/support/process-lives.js';
import { temporaryFolder } from '../../../../test/support/temporary-folder.js';

const folder = temporaryFolder();
let session: ShellSession;
let tool: Tool;

beforeEach(async () => {
  session = new ShellSession(folder());
  tool = terminalTool(session);
});

afterEach(async () => {
  await session.reset();
});

async function run(
  command: string,
  extra: {
    timeout?: number;
    reset?: boolean;
    is_input?: boolean;
    env?: Record<string, string>;
    signal?: AbortSignal;
  } = {},
) {
  const { env = {}, signal = new AbortController().signal, ...input } = extra;
  const observation = await tool.prepare({ command, ...input }).run({
    workingDir: folder(),
    environment: { PATH: process.env['PATH'] ?? '', ...env },
    signal,
  });
  const [content] = observation.content;
  return { ...observation, text: content?.type === 'text' ? content.text : '' };
}

/** Seconds. */
const LIMIT = 600;
const SLEEP = 'sh -c "touch begun; exec sleep 1000"';

/** Runs what makes a file `begun`, and what has no more time then. */
async function runOut(
  command: string,
  passing: number[] = [],
  isInput = false,
  last: () => void = () => undefined,
) {
  const hasBegun = (): boolean => existsSync(folder('begun')) && (last(), true);
  const work = async () => await run(command, { timeout: LIMIT, is_input: isInput });
  return await pastDeadline(work, hasBegun, LIMIT * 1000, passing);
}

describe('the terminal', () => {
  it('reports both streams, exit code and folder', async () => {
    const result = await run('echo out; echo err >&2; (exit 4)');
    expect(result).toMatchObject({
      kind: 'TerminalObservation',
      exit_code: 4,
      is_error: true,
      timeout: false,
      metadata: { exit_code: 4, working_dir: folder() },
    });
    expect(result.text).toBe(`out\nerr\n[Exit code 4, folder ${folder()}]`);
  });

  it.each(['__proto__', 'constructor'])('sets and removes a variable named %s', async (name) => {
    await run('true');
    const env = Object.fromEntries([[name, 'of the user']]);
    expect((await run(`printenv ${name}`, { env })).text).toContain('of the user');
    expect((await run(`printenv ${name}`)).text).not.toContain('of the user');
  });

  it('keeps folder, variables, functions and background jobs', async () => {
    await mkdir(folder('sub dir'));
    await run('cd "sub dir" && A=1 && f() { echo "f $A"; } && export B=2');
    await run('(while [ ! -e stop ]; do sleep 0.02; done; touch stopped) & JOB=$!');
    expect((await run('f; printenv B; pwd')).text).toContain(`f 1\n2\n${folder()}/sub dir\n`);
    await run('touch stop; wait $JOB');
    expect(await readFile(folder('sub dir/stopped'), 'utf8')).toBe('');
    expect(session.workingDir).toBe(folder('sub dir'));
  });

  it('updates changed variables and removes those that are gone', async () => {
    await run('true', { env: { ONE: 'a', TWO: 'b' } });
    const { text } = await run('echo "[$ONE][${TWO-gone}]"', { env: { ONE: "it's\nnew" } });
    expect(text).toContain("[it's\nnew][gone]");
  });

  it('hides its own descriptors', async () => {
    expect((await run('echo x >&3 || echo "no 3"; echo x >&9 || echo "no 9"')).text).toMatch(/no 3[^]*no 9/);
  });

  it('needs no editor to keep the message of a commit', async () => {
    const who = '-c user.name=a -c user.email=a@example.com';
    await run(`git init -q && git ${who} commit -q --allow-empty -m first && git config core.editor false`);
    const env = toolEnvironment(process.env);
    const { text } = await run(`git ${who} commit --amend --allow-empty && git log --format=%s`, { env });
    expect(text).toMatch(/first\n\[Exit code 0/);
  });

  it('survives a command that redirects the shell', async () => {
    await run('exec > swallowed 2>&1; echo gone');
    expect((await run('echo here')).text).toContain('here');
  });

  it.each([
    ['exit 7', 7],
    ['set -e; false; echo not reached', 1],
    ['exec sh -c "exit 5"', 5],
    ['kill -TERM $$', 143],
  ])('gets a new shell after %s', async (command, code) => {
    await mkdir(folder('deep'));
    await run('cd deep; KEPT=1');
    const result = await run(command);
    expect(result).toMatchObject({ exit_code: code, timeout: false });
    expect(result.text).toContain(`The shell ended with exit code ${code}.`);
    expect(result.text).not.toContain('not reached');
    expect((await run('echo "[$KEPT]"; pwd')).text).toContain(`[]\n${folder()}/deep`);
  });

  it('ends the shell for the command that sets -e, and for no later one', async () => {
    await run('set -euo pipefail; KEPT=1; sleep 1000 & true');
    const { text } = await run('grep -q x /dev/null; echo "status $? [$KEPT][$NEVER_SET]"; jobs');
    expect(text).toMatch(/^status 1 \[1\]\[\]\n\[1\].*sleep 1000/);
    expect((await run('set -e; false; true')).text).toContain('Background jobs ended with it.');
  });

  it('waits for no daemon that holds its output when it ends', async () => {
    const daemon = `env -i /usr/bin/setsid -f /bin/bash -c 'echo $$ > ${folder()}/daemon; exec /bin/sleep 1000'`;
    await run(`${daemon}; until [ -s ${folder()}/daemon ]; do :; done`);
    expect((await runOut('echo begun; touch begun; sleep 1000')).text).toContain('begun');
    process.kill(Number(await readFile(folder('daemon'), 'utf8')));
    expect((await run('echo fine')).text).toContain('fine');
  });

  it.each(['unset PWD', 'PWD=a-password', 'PWD=/nowhere'])('knows its folder after %s', async (command) => {
    await mkdir(folder('deep'));
    const result = await run(`cd deep; ${command}`);
    expect(result).toMatchObject({ exit_code: 0, metadata: { working_dir: `${folder()}/deep` } });
    expect((await run('cd ..; rmdir deep; cd - || echo gone')).text).toContain('gone');
  });

  it('reports a syntax error and continues', async () => {
    expect(await run('if then')).toMatchObject({ is_error: true });
    expect((await run('echo fine')).text).toContain('fine');
  });

  const START = (name: string): string =>
    `setsid sh -c "echo \\$\\$ > ${name}; exec sleep 1000" & until [ -s ${name} ]; do :; done`;
  const lives = async (name: string): Promise<boolean> =>
    processLives(Number(await readFile(folder(name), 'utf8')));

  it('interrupts a command that times out with all that it has started, and nothing else', async () => {
    await run(`export KEPT=1; ${START('server')}`);
    const result = await runOut(`${START('own')}; echo begun; touch begun; sleep 1000; echo not reached`);
    expect(result).toMatchObject({ exit_code: -1, timeout: true, is_error: true });
    expect(result.text).toBe(
      `begun\n[The command was interrupted after ${LIMIT} s, with all that it had started. The shell goes on in ${folder()}.]`,
    );
    await until(async () => !(await lives('own')));
    expect(await lives('server')).toBe(true);
    expect((await run('echo "[$KEPT]"; jobs')).text).toMatch(/^\[1\]\n\[1\].*Running.*server/);
  });

  it.each([
    ['a loop without programs', 'touch begun; while :; do :; done; echo not reached'],
    [
      'functions within functions',
      'f() { touch begun; while :; do :; done; }; g() { f; echo not reached; }; g; g',
    ],
    ['a loop that begins programs', `for i in {1..99}; do ${SLEEP}; echo not reached; done`],
    ['a subshell', `(${SLEEP}; echo not reached); echo not reached`],
    ['a substitution', `A=$(${SLEEP}; echo not reached); echo not reached`],
    [
      'a program that ignores SIGINT',
      'bash -c \'trap "" INT; touch begun; while :; do sleep 1000; done\'; echo not reached',
    ],
  ])('interrupts %s, and keeps the shell', async (_what, command) => {
    await run('KEPT=1; trap "echo debug" DEBUG; trap - DEBUG');
    const result = await runOut(command);
    expect(result.text).toContain(`[The command was interrupted after ${LIMIT} s`);
    expect((await run('echo "[$KEPT]"; set -o | grep functrace')).text).toMatch(/^\[1\]\nfunctrace\s+off\n/);
    expect(result.text).not.toContain('not reached');
  });

  it('ends the shell where it cannot be interrupted', async () => {
    const { text } = await runOut('trap "" URG; touch begun; while :; do :; done', [2_000, 10_000]);
    expect(text).toContain(`[The command was ended after ${LIMIT} s, with everything that the shell had`);
  });

  const WAITS = 'The command goes on, and waits for input.';
  const type = (text: string, extra = {}) => run(text, { is_input: true, ...extra });

  it.each([
    ['read', 'read -r LINE; echo "got $LINE"', ['one two'], /^got one two\n\[Exit code 0/],
    ['read -s', 'read -rsp "Password: " WORD; echo "got $WORD"', ['word'], /got word\n/],
    ['getpass', `python3 -c 'import getpass; print("got", getpass.getpass())'`, ['word'], /got word\n/],
    ['cat', 'cat; echo "end $?"', ['one', 'C-d'], /^end 0\n/],
    ['cat in a pipe', 'cat | tr a-z A-Z', ['one', 'C-d'], /^ONE\n\[Exit code 0/],
    ['python3', 'python3', ['x = 6', 'print(x * 7)', 'exit(3)'], /Exit code 3/],
    ['python3 -i', 'python3 -i', ['print(6 * 7)', 'C-d'], /Exit code 0/],
    ['node', 'node', ['6 * 7', '.exit'], /Exit code 0/],
    ['a job in the background beside it', 'sleep 1000 & cat', ['one', 'C-d'], /Exit code 0/],
  ])('gives %s its input', async (_what, command, inputs, end) => {
    const begun = await run(command);
    expect(begun).toMatchObject({ is_error: false, exit_code: -1, timeout: false });
    expect(begun.text).toContain(WAITS);
    for (const input of inputs.slice(0, -1)) {
      expect((await type(input)).text).toContain(WAITS);
    }
    expect((await type(inputs.at(-1) ?? '')).text).toMatch(end);
    expect((await run('echo fine')).text).toMatch(/^fine\n\[Exit code 0/);
  });

  it('shows what a program answers', async () => {
    await run('python3 -i');
    expect((await type('print(6 * 7)')).text).toMatch(/^42\n/);
    await type('C-c');
    expect((await type('print(7 * 7)')).text).toMatch(/^49\n/);
    expect((await type('import sys; print(sys.stdin.isatty(), sys.stdout.isatty())')).text).toMatch(
      /^True False/,
    );
  });

  it('does not take a program that is busy for one that waits', async () => {
    await run('python3 -c "import time; input(); time.sleep(1000)"; echo not reached');
    const result = await type('go', { timeout: 2 });
    expect(result).toMatchObject({ timeout: true });
    expect(result.text).not.toContain('not reached');
  });

  it.each([
    ['a program', 'cat; echo not reached'],
    ['a loop of programs', 'for i in {1..99}; do cat; done; echo not reached'],
    ['the shell', 'KEPT=1; read -r LINE; echo not reached'],
  ])('ends %s that waits with C-c, and keeps the shell', async (_what, command) => {
    await run('export KEPT=1');
    expect((await run(command)).text).toContain(WAITS);
    const { text } = await type('C-c');
    expect(text).toMatch(/^\[Exit code 130/);
    expect((await run('echo "[$KEPT]"')).text).toMatch(/^\[1\]/);
  });

  it('stops a program with C-z, and goes on with it by fg', async () => {
    await run('cat');
    expect((await type('C-z')).text).toContain('[Exit code 148');
    expect((await run('jobs')).text).toMatch(/Stopped.*cat/);
    expect((await run('fg')).text).toContain(WAITS);
    expect((await type('again')).text).toMatch(/^again\n/);
    expect((await type('C-d')).text).toContain('[Exit code 0');
  });

  it('refuses C-z where programs in the background would go on with the terminal', async () => {
    await run('sleep 1000 & cat');
    expect((await type('C-z')).text).toContain('cannot be stopped');
    expect((await type('C-d')).text).toContain('[Exit code 0');
  });

  it('runs nothing else while a program waits, and waits longer for an empty text', async () => {
    await run('read -r LINE; echo "got $LINE"');
    const refused = await run('touch made');
    expect(refused).toMatchObject({ is_error: true, exit_code: 1 });
    expect(refused.text).toContain('Not run: the last command still waits for input.');
    expect((await type('x'.repeat(5_000))).text).toContain('lines of at most 4095 bytes');
    expect((await type('')).text).toContain(WAITS);
    expect((await run('')).text).toContain(WAITS);
    expect((await type('it')).text).toMatch(/^got it\n/);
    expect(existsSync(folder('made'))).toBe(false);
  });

  it('goes on after its time where it waits, and is interrupted where it does not', async () => {
    expect((await run('read -r LINE; echo "got $LINE"; touch begun; sleep 1000')).text).toContain(WAITS);
    expect((await type('', { timeout: 0.1 })).text).toContain(WAITS);
    expect((await runOut('it', [], true)).text).toMatch(/^got it\n\[The command was interrupted after /);
  });

  it('shows with the next command what one that waited wrote before it ended', async () => {
    const reader = `bash -c '(until [ -e go ]; do sleep 0.02; done; kill $$) & read -r LINE'`;
    expect((await run(`${reader}; echo over`)).text).toContain(WAITS);
    await writeFile(folder('go'), '');
    await until(() => session.waiting === null);
    expect((await run('echo fine')).text).toMatch(/over\nfine\n\[Exit code 0/);
  });

  it('gives background jobs no terminal, and leaves it as the next program needs it', async () => {
    expect((await run('cat & wait; echo "read $?"')).text).toContain('read 0');
    await run(`python3 -c 'import tty; tty.setraw(0); input()'`);
    await type('C-c');
    expect((await run('stty -a')).text).toMatch(/[^-]icanon[^]* -echo /);
  });

  it('takes a program that wants /dev/tty for one that fails', async () => {
    expect(await run('read -r LINE </dev/tty')).toMatchObject({ is_error: true, exit_code: 1 });
  });

  it.each(['C-c', 'C-d', 'C-z', 'touch made'])('never runs input as a command: %s', async (command) => {
    await run(START('server'));
    const result = await run(command, { is_input: true });
    expect(result).toMatchObject({ is_error: true, exit_code: 1 });
    expect(result.text).toContain('Nothing was sent: no program waits in the foreground');
    expect([existsSync(folder('made')), await lives('server')]).toEqual([false, true]);
  });

  it('shows what a command printed before its timeout, read by then or not', async () => {
    const command =
      'touch begun; until [ -e go ]; do sleep 0.01; done; echo printed; touch printed; sleep 1000';
    // This process stands still meanwhile, and its time is over before it reads.
    const print = () =>
      spawnSync('sh', ['-c', 'touch go; until [ -e printed ]; do :; done'], { cwd: folder() });
    const { text } = await runOut(command, [], false, print);
    expect(text).toContain('printed\n[The command was interrupted');
  });

  it('shows what a program wrote before it waits, read by then or not', async () => {
    const ended = run('touch begun; until [ -e go ]; do :; done; echo printed; touch printed; read -r LINE');
    await until(() => existsSync(folder('begun')));
    // From here on, timers come before output, and this process stands still for longer than what waits is silent.
    await nextTurn();
    const print = 'touch go; until [ -e printed ]; do :; done; sleep 0.6';
    spawnSync('sh', ['-c', print], { cwd: folder() });
    expect((await ended).text).toMatch(/^printed\n\[The command goes on/);
  });

  it('interrupts a command that is aborted, with everything that it started', async () => {
    await run(START('server'));
    const aborter = new AbortController();
    const command = 'setsid sh -c "echo \\$\\$ > escaped; exec sleep 1000" & sleep 1000';
    const ended = run(command, { signal: aborter.signal });
    const escaped = async () => Number(await readFile(folder('escaped'), 'utf8').catch(() => ''));
    await until(async () => (await escaped()) > 0);
    aborter.abort();
    expect((await ended).text).toContain('[The command was interrupted');
    await until(async () => !(await lives('escaped')));
    expect(await lives('server')).toBe(true);
  });

  it('starts over on demand', async () => {
    await run('cd / ; A=1');
    expect((await run('echo "[$A]"; pwd', { reset: true })).text).toContain(`[]\n${folder()}\n`);
  });

  it('returns to the first folder when the last one is gone', async () => {
    await run('mkdir gone && cd gone && rmdir ../gone; exit 0');
    expect((await run('pwd')).text).toContain(`${folder()}\n`);
  });

  it('goes on above the first folder when that is gone too, as after a restart', async () => {
    await run('rm -rf "$PWD"; exit 0');
    expect((await run(`mkdir ${folder()}; pwd`)).text).toContain(`${dirname(folder())}\n[Exit code 0`);
    expect((await run('pwd', { reset: true })).text).toContain(`${folder()}\n[Exit code 0`);
  });

  it('keeps beginning and end of a long output, whole characters only', async () => {
    const { text } = await run(`printf 'START'; yes 'äöü' | head -n 200000; printf 'END'`);
    expect(text.length).toBeLessThan(31_000);
    expect(text).toMatch(/^STARTäöü\n[^]*\n\[\.\.\. \d+ characters left out \.\.\.\]\n[^]*END/);
    expect(text).not.toContain('\uFFFD');
  });
});
