import type { Command } from '@commander-js/extra-typings';
import { productVersion } from '../common/product.js';
import { type CommandLineConfig, loadCommandLineConfig } from '../config/command-line-config.js';
import { loadConfig } from '../config/load-config.js';
import { type CommandOutput, newProgram, runProgram, TERMINAL, UsageError } from './command-output.js';
import { listTasks, openPullRequest, runConversation, watchConversation } from './conversation-commands.js';
import { defineKeys } from './keys-program.js';
import { onAnyService } from './local-service.js';
import { listSandboxes, stopSandboxes } from './sandbox-commands.js';
import { type Invocation, ServiceClient } from './service-client.js';

const FOOTER = `
SLIPWAY_URL and SLIPWAY_KEY say which service is asked, and as whom; without them it is the one of this folder.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 the service cannot be reached, 4 not allowed.`;

/** Runs one command of `slipway`, and returns its exit status; `serve` returns once the service listens. */
export async function runSlipway(
  args: readonly string[],
  output = TERMINAL,
  readConfig: () => CommandLineConfig = loadCommandLineConfig,
): Promise<number> {
  return await runProgram(slipwayProgram(output, readConfig), args, 'slipway', output);
}

function slipwayProgram(output: CommandOutput, readConfig: () => CommandLineConfig): Command {
  const invocation = (json = false): Invocation => ({
    client: new ServiceClient(readConfig()),
    output,
    json,
  });
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
        throw new UsageError(`there is no command ${unknown}: slipway --help lists them`);
      }
      await import('../main.js');
    });
  program
    .command('tasks')
    .description('list what is to be done across your repositories')
    .option('--providers <list>', 'only these git providers, such as github,gitlab')
    .option('--types <list>', 'only these kinds, such as FAILING_CHECKS,OPEN_PR')
    .option('--limit <number>', 'at most so many')
    .option('--json', 'print JSON')
    .action(async ({ json, types: task_types, ...filter }) => {
      await listTasks(invocation(json), { ...filter, task_types });
    });
  program
    .command('run')
    .description('let an agent do a suggested task, or what a message asks for in a repository')
    .argument('<task|repository>', 'such as github:owner/name#12, or github:owner/name with a message')
    .argument('[message]', 'what the agent shall do')
    .option('--json', 'print events as JSON, one a line')
    .action(async (subject, message, { json }) => await runConversation(invocation(json), subject, message));
  program
    .command('watch <conversation>')
    .description('follow a conversation until its agent rests')
    .option('--json', 'print events as JSON, one a line')
    .action(async (id, { json }) => await watchConversation(invocation(json), id));
  program
    .command('pull-request <conversation>')
    .description("open the pull request of a conversation's branch")
    .option('--title <text>')
    .option('--body <text>')
    .option('--draft', 'not ready for review yet')
    .option('--source-branch <name>')
    .option('--target-branch <name>')
    .option('--json', 'print JSON')
    .action(async (id, { json, sourceBranch: source_branch, targetBranch: target_branch, ...options }) => {
      await openPullRequest(invocation(json), id, { ...options, source_branch, target_branch });
    });
  defineKeys(program.command('keys'), async (command) => {
    // Without an address on the database, which also makes the first key.
    if (readConfig().isLocal) {
      const { executeKeys } = await import('./run-keys.js');
      await executeKeys(command, loadConfig(), output);
    } else {
      const { runRemoteKeys } = await import('./remote-keys.js');
      await runRemoteKeys(invocation().client, command, output);
    }
  });
  const sandboxes = program.command('sandboxes').description('list and stop sandboxes');
  sandboxes
    .command('list')
    .option('--json', 'print JSON')
    .action(async ({ json }) => await listSandboxes(invocation(json)));
  sandboxes
    .command('stop [ids...]')
    .description('stop sandboxes, which keep their files; also where no service runs in this folder')
    .option('--all', 'all that run')
    .action(async (ids, { all = false }) => {
      if (all === ids.length > 0) {
        throw new UsageError('sandboxes stop needs ids, or --all');
      }
      await onAnyService(readConfig(), async (client) => {
        await stopSandboxes({ client, output }, all ? 'all' : ids);
      });
    });
  program
    .command('support-bundle')
    .description('write versions, configuration without secrets, readiness and last log lines into a file')
    .action(async () => {
      const { writeSupportBundle } = await import('./support-bundle.js');
      const { name, problem } = await writeSupportBundle(invocation().client, new Date());
      if (problem !== null) {
        output.note(`slipway: without what the service says of itself: ${problem}`);
      }
      output.result(name);
    });
  return program;
}
