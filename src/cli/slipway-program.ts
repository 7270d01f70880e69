import { closest, distance } from 'fastest-levenshtein';
import { productVersion } from '../common/product.js';
import { loadCommandLineConfig } from '../config/command-line-config.js';
import { loadConfig } from '../config/load-config.js';
import type { TrialCheck } from '@slipway/models/model-trial.js';
import { endWithReader, newProgram, printRows, runProgram, TERMINAL, UsageError } from './command-output.js';
import { defineConversations } from './conversation-commands.js';
import { defineKeys } from './keys-program.js';
import { runRemoteKeys } from './remote-keys.js';
import { defineSandboxes } from './sandbox-commands.js';
import { type Invoke, ServiceClient } from './service-client.js';
import { defineUsers } from './users-program.js';

const FOOTER = `
SLIPWAY_URL and SLIPWAY_KEY say which service is asked, and as whom; without them it is the one of this folder.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 the service cannot be reached, 4 not allowed.`;

/** Letters that a command may be off. */
const MISSPELT = 2;

const ELSEWHERE = `
With SLIPWAY_URL and SLIPWAY_KEY, create, list and revoke ask that service.`;

/** Runs one command of `slipway`, and returns its exit status; `serve` returns once the service listens. */
export async function runSlipway(
  args: readonly string[],
  output = TERMINAL,
  readConfig = loadCommandLineConfig,
): Promise<number> {
  const invoke: Invoke = (json = false) => {
    if (output === TERMINAL) {
      endWithReader();
    }
    return { client: new ServiceClient(readConfig()), output, json };
  };
  const program = newProgram('slipway', output)
    .description('Runs software-development agents, and the service behind them.')
    .version(productVersion())
    .addHelpText('after', FOOTER);
  program
    .command('serve', { isDefault: true })
    .description('run the service (the default)')
    .allowExcessArguments()
    .action(async (_options, { args: [unknown] }) => {
      if (unknown !== undefined) {
        const nearest = closest(
          unknown,
          program.commands.map((command) => command.name()),
        );
        const advice =
          distance(unknown, nearest) <= MISSPELT ? `did you mean ${nearest}?` : 'slipway --help lists them';
        throw new UsageError(`there is no command ${unknown}: ${advice}`);
      }
      await import('../main.js');
    });
  defineConversations(program, invoke);
  defineKeys(program.command('keys').addHelpText('after', ELSEWHERE), async (command) => {
    const { client } = invoke();
    if (!client.config.isLocal) {
      return await runRemoteKeys(client, command, output);
    }
    // Connects to the database directly, without an address of the service; this also makes the first key.
    await (await import('./keys-commands.js')).executeKeys(command, loadConfig(), output);
  });
  defineUsers(program.command('users'), async (command) => {
    await (await import('./keys-commands.js')).executeUsers(command, loadConfig(), output);
  });
  defineSandboxes(program.command('sandboxes'), invoke);
  program
    .command('model')
    .description('test models')
    .command('check [profile]')
    .description('ask the model of the settings, or a stored one, what it can do: 10,000 tokens at most')
    .option('--json', 'print JSON')
    .action(async (profile, { json }) => {
      const { client, ...shown } = invoke(json);
      const request = client.http.post('/api/v1/model-check', { json: { profile }, timeout: 90_000 });
      const { checks } = await request.json<{ checks: TrialCheck[] }>();
      printRows(shown, checks, { CHECK: 'name', RESULT: 'result', DETAIL: 'detail', SET: settingText });
    });
  program
    .command('support-bundle')
    .description('write versions, configuration without secrets, readiness and last log lines into a file')
    .action(async () => await (await import('./support-bundle.js')).writeSupportBundle(invoke()));
  return await runProgram(program, args, 'slipway', output);
}

function settingText({ setting }: TrialCheck): string {
  return setting ? JSON.stringify(setting) : '';
}
