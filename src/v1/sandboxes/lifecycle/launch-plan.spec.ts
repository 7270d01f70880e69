import { rootCertificates } from 'node:tls';
import { describe, expect, it } from '@jest/globals';
import { TEST_CERTIFICATE } from '../../../../test/support/tls-certificate.js';
import { builtInSpecs, type SandboxSpec } from '../../sandbox-specs/sandbox-specs.js';
import type { SandboxBackendKind } from '@slipway/sandboxes/sandbox-backend.js';
import { privateAuthorities, specsProblem, toLaunch, toOverrides } from './launch-plan.js';

function spec(id: string, change: Partial<SandboxSpec>): SandboxSpec[] {
  return builtInSpecs(new Date(0)).map((each) => ({ ...each, id, ...change }));
}

const LIMITED = [...spec('a', { cpu: 1, memoryMb: 512 }), ...spec('b', { cpu: 1 })];
const CONTAINED = [...spec('a', { runtime: 'runsc' }), ...spec('b', { network: 'n' }), ...spec('c', {})];

it('names the specifications that only containers can have', () => {
  expect(specsProblem(CONTAINED, 'process')).toMatch(/no effect for a, b$/);
});

it.each<[string, SandboxSpec[], SandboxBackendKind]>([
  ['the built-in list', builtInSpecs(new Date(0)), 'process'],
  ['limits', LIMITED, 'process'],
  ['containers', CONTAINED, 'docker'],
  ['an image', spec('d', { program: { kind: 'image', image: 'i', args: [] }, runtime: 'runsc' }), 'process'],
])('accepts %s', (_, specs, backend) => {
  expect(specsProblem(specs, backend)).toBeNull();
});

const SPEC: SandboxSpec = {
  id: 'slipway',
  program: { kind: 'native', image: null },
  env: { LANG: 'C.UTF-8' },
  workingDir: 'workspace',
  startTimeoutSeconds: 60,
  cpu: null,
  memoryMb: null,
  runtime: 'runsc',
  network: 'none',
  pod: null,
  ports: { WORKER_1: 8011 },
  egress: null,
  createdAt: new Date(0),
};

describe('toLaunch', () => {
  it('is the specification without overrides', () => {
    const { launch, notes } = toLaunch(SPEC, null, 'docker');

    expect(notes).toEqual([]);
    expect(launch).toEqual({
      program: { kind: 'native', image: null },
      env: { LANG: 'C.UTF-8' },
      workingDir: 'workspace',
      cpu: null,
      memoryMb: null,
      runtime: 'runsc',
      network: 'none',
      pod: null,
      ports: { WORKER_1: 8011 },
    });
  });

  it.each([
    [{}, 2, { cpu: 4, memoryMb: 8192 }],
    [{ cpu: 0.5, memoryMb: 1000 }, 1.5, { cpu: 0.75, memoryMb: 1500 }],
    [{ cpu: 1 }, 1, { cpu: 1, memoryMb: null }],
  ])('docker: %j times %s', (given, resourceFactor, expected) => {
    const { launch, notes } = toLaunch({ ...SPEC, ...given }, { resourceFactor, image: null }, 'docker');

    expect(launch).toMatchObject(expected);
    expect(notes).toEqual([]);
  });

  it.each([
    [
      { kind: 'native', image: null },
      { kind: 'native', image: 'mine:1' },
    ],
    [
      { kind: 'image', image: 'stock:1', args: ['--port', '8000'] },
      { kind: 'image', image: 'mine:1', args: ['--port', '8000'] },
    ],
  ] as const)('docker: another image in %j', (program, expected) => {
    const spec = { ...SPEC, program: structuredClone(program) as SandboxSpec['program'] };

    expect(toLaunch(spec, { resourceFactor: null, image: 'mine:1' }, 'docker')).toEqual({
      launch: expect.objectContaining({ program: expected }),
      notes: [],
    });
  });

  it.each([
    ['process', { resourceFactor: 1, image: 'mine:1' }, ['mine:1']],
    ['process', { resourceFactor: 4, image: 'mine:1' }, ['mine:1']],
    ['docker', { resourceFactor: null, image: 'mine:1' }, ['mine:1']],
    ['docker', { resourceFactor: null, image: null, unusedImage: 'base:1' }, ['base:1']],
  ] as const)('%s says what of %j has no effect', (backend, overrides, named) => {
    const spec: SandboxSpec = { ...SPEC, program: { kind: 'command', command: 'serve', args: [] } };
    const { launch, notes } = toLaunch(spec, overrides, backend);

    expect(notes).toHaveLength(named.length);
    for (const [index, name] of named.entries()) {
      expect(notes[index]).toContain(name);
      expect(notes[index]).toContain('has no effect');
    }
    expect(launch.program).toEqual(spec.program);
  });
});

describe('toOverrides', () => {
  const none = {
    remote_runtime_resource_factor: null,
    sandbox_base_container_image: null,
    sandbox_runtime_container_image: null,
  };

  it.each([
    [null, null],
    [none, null],
    [
      { ...none, remote_runtime_resource_factor: 2 },
      { resourceFactor: 2, image: null },
    ],
    [
      { ...none, sandbox_base_container_image: 'base' },
      { resourceFactor: null, image: 'base' },
    ],
    [
      { ...none, sandbox_base_container_image: 'base', sandbox_runtime_container_image: 'run' },
      { resourceFactor: null, image: 'run', unusedImage: 'base' },
    ],
    [
      { ...none, sandbox_base_container_image: 'base', sandbox_runtime_container_image: '' },
      { resourceFactor: null, image: 'base' },
    ],
  ])('%j: %j', (settings, overrides) => {
    expect(toOverrides(settings)).toEqual(overrides);
  });
});

describe('privateAuthorities', () => {
  const own = TEST_CERTIFICATE.trim();

  it.each([
    ['one', `${own}\n`, [own]],
    ['one as Windows stores it', `\uFEFF${own.replaceAll('\n', '\r\n')}\r\n`, [own]],
    ['two, with remarks', `# root\n${own}\n# issuing\n${own}`, [own, own]],
    ["all of a system's", [...rootCertificates, own].join('\n'), [own]],
    ["a system's with other line breaks", rootCertificates.join('\n').replaceAll('\n', '\r\n'), []],
    ['a key', own.replaceAll('CERTIFICATE', 'PRIVATE KEY'), []],
  ])('of %s', (_name, bundle, expected) => {
    expect(privateAuthorities(bundle)).toEqual(expected);
  });
});
