import { describe, expect, it } from '@jest/globals';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import type { SandboxLaunch, SandboxProgram } from '../sandbox-backend.js';
import { isToldItsPort, programCommand, unmetWishes } from './program-command.js';
import { sandboxPaths } from './sandbox-paths.js';

function launch(program: SandboxProgram, changes: Partial<SandboxLaunch> = {}): SandboxLaunch {
  return {
    id: 'a',
    sessionKey: 'the-key',
    program,
    env: {},
    workingDir: 'workspace',
    cpu: null,
    memoryMb: null,
    runtime: null,
    network: null,
    ports: {},
    callbackUrl: null,
    ...changes,
  };
}

const NATIVE: SandboxProgram = { kind: 'native', image: null };
const REST = {
  paths: sandboxPaths('/data', 'a', 'workspace'),
  agentServer: { node: '/bin/node', entry: '/app/dist/agent-server/main.js', args: ['--flag'] },
  toolWrapper: [],
  host: '127.0.0.1',
  port: null,
};

describe('programCommand', () => {
  it('runs our agent server, which gets its key on its standard input', () => {
    const { command, input } = programCommand({ launch: launch(NATIVE), ...REST });
    expect(command.slice(0, 3)).toEqual(['/bin/node', '--flag', '/app/dist/agent-server/main.js']);
    expect(command.join(' ')).toContain(
      '--port 0 --port-file /data/a/box/port --workspace /data/a/box/workspace',
    );
    expect(command).not.toContain('--webhook-url');
    expect(command).not.toContain('--tool-wrapper');
    expect(command.join(' ')).not.toContain('the-key');
    expect(input).toBe('{"session_api_key":"the-key"}\n');
  });

  it('tells it where events go and what wraps its tools', () => {
    const { command } = programCommand({
      ...REST,
      launch: launch(NATIVE, { callbackUrl: 'http://service/hooks' }),
      toolWrapper: ['wrap', '--'],
    });
    expect(command.slice(-4)).toEqual([
      '--webhook-url',
      'http://service/hooks',
      '--tool-wrapper',
      '["wrap","--"]',
    ]);
  });

  it('runs another program with its port and address put in', () => {
    const program: SandboxProgram = {
      kind: 'command',
      command: 'p',
      args: ['--port={port}', '--host={host}', 'x'],
    };
    expect(programCommand({ launch: launch(program), ...REST, port: 4000 })).toEqual({
      command: ['p', '--port=4000', '--host=127.0.0.1', 'x'],
      input: null,
    });
    expect([program, NATIVE].map(isToldItsPort)).toEqual([true, false]);
  });

  it('refuses an image', () => {
    const program: SandboxProgram = { kind: 'image', image: 'i:1', args: [] };
    expect(() => programCommand({ launch: launch(program), ...REST })).toThrow(SandboxBackendError);
  });
});

it('says what it cannot do of what a specification asks for', () => {
  expect(unmetWishes(launch(NATIVE))).toEqual([]);
  const wishes = { cpu: 2, memoryMb: 512, runtime: 'runsc', network: 'n' };
  const lines = unmetWishes(launch({ kind: 'native', image: 'i:1' }, wishes));
  expect(lines.map((line) => line.replace(/^.* apply /, ''))).toEqual([
    'the image of the sandbox specification.',
    'the processor limit of the sandbox specification.',
    'the memory limit of the sandbox specification.',
    'the container runtime of the sandbox specification.',
    'the network of the sandbox specification.',
  ]);
});
