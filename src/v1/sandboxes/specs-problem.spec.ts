import { expect, it } from '@jest/globals';
import { builtInSpecs } from '../sandbox-specs/built-in-specs.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';
import { specsProblem } from './specs-problem.js';

function spec(id: string, change: Partial<SandboxSpec>): SandboxSpec[] {
  return builtInSpecs(new Date(0)).map((each) => ({ ...each, id, ...change }));
}

const LIMITED = [...spec('a', { cpu: 1 }), ...spec('b', { memoryMb: 512 }), ...spec('c', {})];

it('names the specifications whose limits processes cannot have', () => {
  expect(specsProblem(LIMITED, 'process')).toMatch(/no effect for a, b$/);
});

it.each<[string, SandboxSpec[], 'process' | 'docker']>([
  ['the built-in list', builtInSpecs(new Date(0)), 'process'],
  ['containers', LIMITED, 'docker'],
  ['an image', spec('d', { program: { kind: 'image', image: 'i', args: [] }, cpu: 1 }), 'process'],
])('has nothing against %s', (_, specs, backend) => {
  expect(specsProblem(specs, backend)).toBeNull();
});
