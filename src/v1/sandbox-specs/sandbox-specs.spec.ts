import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { BUILT_IN_PRESETS } from '@slipway/egress-rules/egress-rules.js';
import { parseSandboxSpecs } from './sandbox-specs.js';

const NOW = new Date('2026-11-21T09:30:00Z');

describe('parseSandboxSpecs', () => {
  it('reads an entry that sets every member', async () => {
    const file = JSON.stringify([
      {
        id: 'stock',
        command: 'python',
        args: ['-m', 'openhands.agent_server', '--port', '{port}'],
        env: { OH_ENABLE_VNC: '0' },
        working_dir: '/workspace/project',
        start_timeout_seconds: 180,
        resources: { cpu: 1.5, memory_mb: 2048 },
        runtime: 'runsc',
        network: 'agents',
        pod: {
          volume_size: '20Gi',
          storage_class: 'fast',
          service_account: 'puller',
          template: { spec: { nodeSelector: { gpu: 'yes' } } },
        },
        ports: { APP_1: 3000, DEV_SERVER_2: 5173 },
        egress: { allow: ['npm', '*.example.com'], deny: ['x.example.com'] },
      },
    ]);
    expect(await parseSandboxSpecs(file, NOW)).toEqual([
      {
        id: 'stock',
        program: {
          kind: 'command',
          command: 'python',
          args: ['-m', 'openhands.agent_server', '--port', '{port}'],
        },
        env: { OH_ENABLE_VNC: '0' },
        workingDir: '/workspace/project',
        startTimeoutSeconds: 180,
        cpu: 1.5,
        memoryMb: 2048,
        runtime: 'runsc',
        network: 'agents',
        pod: {
          volumeSize: '20Gi',
          storageClass: 'fast',
          serviceAccount: 'puller',
          template: { spec: { nodeSelector: { gpu: 'yes' } } },
        },
        ports: { APP_1: 3000, DEV_SERVER_2: 5173 },
        egress: {
          default: 'deny',
          allow: [...(BUILT_IN_PRESETS['npm'] ?? []), { host: '*.example.com' }],
          deny: [{ host: 'x.example.com' }],
        },
        createdAt: NOW,
      },
    ]);
  });

  it.each([
    ['an entry without one', '- id: a', { kind: 'native', image: null }],
    [
      'our agent server in an image',
      '- { id: a, image: i:1, agent_server: slipway }',
      { kind: 'native', image: 'i:1' },
    ],
    [
      'an image',
      '- { id: a, image: i:1, args: [--port, "8000"] }',
      { kind: 'image', image: 'i:1', args: ['--port', '8000'] },
    ],
    [
      'a command in one list',
      '- { id: a, command: [p, -m, s] }',
      { kind: 'command', command: 'p', args: ['-m', 's'] },
    ],
  ])('reads the program: %s', async (_, file, program) => {
    expect((await parseSandboxSpecs(file, NOW))[0]?.program).toEqual(program);
  });

  it.each([
    ['- [', /^is neither YAML nor JSON: /],
    ['[]', 'must list at least one specification'],
    ['{ id: a }', /expected array/],
    ['- { id: "a b" }', '[0].id: must be 1 to 200 letters, digits or . _ - / : @ +'],
    ['- { id: a, comand: x }', /^\[0\]: Unrecognized key: "comand"/],
    ['- { id: a, image: i, command: c }', '[0]: takes an image or a command, not both'],
    [
      '- { id: a, agent_server: openhands }',
      '[0]: needs an image or a command where agent_server is openhands',
    ],
    ['- { id: a, start_timeout_seconds: 0 }', /^\[0\]\.start_timeout_seconds: /],
    ['- { id: a, env: { "A-B": x } }', '[0].env["A-B"]: must be a variable name'],
    ['- { id: a, ports: { app: 3000 } }', '[0].ports.app: must be a name like WORKER_1'],
    ['- { id: a, ports: { PATH: 3000 } }', '[0].ports.PATH: must be a name like WORKER_1'],
    [
      '- { id: a, ports: { OH_SESSION_API_KEYS_1: 3000 } }',
      '[0].ports.OH_SESSION_API_KEYS_1: must be a name like WORKER_1',
    ],
    ['- { id: a, ports: { APP_1: 80 } }', /^\[0\]\.ports\.APP_1: /],
    ['- { id: a, ports: { APP_1: 3000, APP_2: 3000 } }', '[0].ports: must be different ports, and not 8000'],
    ['- { id: a, ports: { APP_1: 8000 } }', '[0].ports: must be different ports, and not 8000'],
    ['- { id: a, env: { WORKER_1: x } }', '[0]: takes WORKER_1 as a variable of env or as a port, not both'],
    ['- { id: a, pod: { volume_size: 20GB } }', '[0].pod.volume_size: must be a size such as 20Gi'],
    ['- { id: a, pod: { storage_class: Fast } }', '[0].pod.storage_class: must be lower-case letters'],
    ['- { id: a, pod: { volume: 1Gi } }', /^\[0\]\.pod: Unrecognized key: "volume"/],
    ['- id: a\n- id: a', '[1].id: "a" is listed twice'],
  ])('refuses %j', async (file, reason) => {
    await expect(parseSandboxSpecs(file, NOW)).rejects.toThrow(reason);
  });

  it.each([
    ['an entry without ports', '- id: a', { WORKER_1: 8011, WORKER_2: 8012 }],
    ['an empty list of ports', '- { id: a, ports: {} }', {}],
  ])('reads the ports: %s', async (_, file, ports) => {
    expect((await parseSandboxSpecs(file, NOW))[0]?.ports).toEqual(ports);
  });

  it('reads the example that comes with the service', async () => {
    const file = readFileSync(new URL('../../../deploy/sandbox-specs.example.yaml', import.meta.url), 'utf8');
    expect((await parseSandboxSpecs(file, NOW)).map(({ id, program }) => [id, program.kind])).toEqual([
      ['slipway', 'native'],
      ['slipway-java', 'native'],
      ['openhands', 'image'],
      ['openhands-process', 'command'],
    ]);
  });
});
