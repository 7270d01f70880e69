import { expect, it } from '@jest/globals';
import { ScriptedSandboxBackend } from '../../../test/fakes/scripted-sandbox-backend.js';
import { sandboxLaunch } from '../../../test/support/sandbox-launch.js';
import { parseConfig } from '../../config/load-config.js';
import { SILENT_LOG } from '@slipway/common/log.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { requireMayStop } from '@slipway/sandboxes/sandbox-backend.js';
import { BackendMetrics, measured } from './sandbox-backend.factory.js';

const LAUNCH = sandboxLaunch();

it('counts calls of the backend, and those that failed unless their caller broke them off', async () => {
  const metrics = new Metrics('slipway', SILENT_LOG);
  const scripted = new ScriptedSandboxBackend();
  const backend = measured(scripted, new BackendMetrics(metrics, parseConfig({}, false)));

  expect(await backend.list()).toEqual([]);
  await expect(backend.resume(LAUNCH, new AbortController().signal)).rejects.toThrow('files are gone');
  await expect(backend.resume(LAUNCH, AbortSignal.abort())).rejects.toThrow('files are gone');

  expect(scripted.calls).toEqual([`resume ${LAUNCH.id}`, `resume ${LAUNCH.id}`]);
  const text = await metrics.text();
  expect(text).toMatch(/call_seconds_count\{backend="process",operation="list"\} 1$/m);
  expect(text).toMatch(/call_seconds_count\{backend="process",operation="resume"\} 2$/m);
  expect(text).toMatch(/errors_total\{backend="process",operation="resume"\} 1$/m);
  expect(text).toMatch(/errors_total\{backend="process",operation="list"\} 0$/m);
});

it('hands on whether a sandbox may be stopped', async () => {
  class Asking extends ScriptedSandboxBackend {
    override async pause(_id: string, mayStop?: () => boolean): Promise<void> {
      requireMayStop(mayStop);
    }
  }
  const backend = measured(
    new Asking(),
    new BackendMetrics(new Metrics('slipway', SILENT_LOG), parseConfig({}, false)),
  );

  await expect(backend.pause(LAUNCH.id, () => false)).rejects.toThrow(/its lease has ended/);
  await backend.pause(LAUNCH.id, () => true);
});
