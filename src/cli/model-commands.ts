import type { Command } from '@commander-js/extra-typings';
import type { TrialCheck } from '../settings/model-trial/model-trial.service.js';
import { printRows } from './command-output.js';
import type { Invoke } from './service-client.js';

/** The service asks a model for a minute at most. */
const PATIENCE_MS = 90_000;

export function defineModel(model: Command, invoke: Invoke): void {
  model
    .description('test models')
    .command('check [profile]')
    .description(
      'ask the model of the settings, or a stored one, what it can do; it costs 10,000 tokens at most',
    )
    .option('--json', 'print JSON')
    .action(async (profile, { json }) => {
      const { client, ...shown } = invoke(json);
      const options = { json: { profile }, timeout: PATIENCE_MS, retry: 0 };
      const answer = client.http.post('/api/v1/model-check', options);
      const { model: name, checks } = await answer.json<{ model: string; checks: TrialCheck[] }>();
      shown.output.note(`model ${name}`);
      printRows(shown, checks, {
        CHECK: 'name',
        RESULT: 'result',
        DETAIL: 'detail',
        SET: ({ setting }) => (setting ? JSON.stringify(setting) : ''),
      });
    });
}
