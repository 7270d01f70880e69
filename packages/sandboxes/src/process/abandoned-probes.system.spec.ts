import { beforeEach, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { useFolder } from '../../../../test/support/use-folder.js';
import { AbandonedProbes } from './isolation-probe.js';
import { sandboxMarker } from './program-command.js';

const place = useFolder();
let folder: string;
let now: number;
let probes: AbandonedProbes;

beforeEach(() => {
  folder = place.path;
  now = 0;
  probes = new AbandonedProbes({ folder, instanceId: 'instance' }, () => now);
});

it('removes the folders and processes of probes that nobody ended', async () => {
  await mkdir(path.join(folder, '.probe-1/box'), { recursive: true });
  await mkdir(path.join(folder, 'asandbox'));
  const [name = '', value = ''] = sandboxMarker('instance', '.probe-1').split('=');
  const child = spawn('sleep', ['1000'], { env: { [name]: value }, stdio: 'ignore' });
  const ended = once(child, 'exit');
  await probes.remove();
  now = 40_000;
  await probes.remove();
  await ended;
  expect(await readdir(folder)).toEqual(['asandbox']);
});

it('leaves probes alone that may be running', async () => {
  await probes.remove();
  now = 100_000;
  await mkdir(path.join(folder, '.probe-1'));
  await probes.remove();
  now = 139_999;
  await probes.remove();
  expect(await readdir(folder)).toEqual(['.probe-1']);
});
