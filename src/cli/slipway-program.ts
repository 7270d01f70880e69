import { Command, CommanderError } from 'commander';
import { productVersion } from '../common/product.js';
import { type CommandLineConfig, loadCommandLineConfig } from '../config/command-line-config.js';
import type { CommandOutput } from './command-output.js';
import {
  listTasks,
  openPullRequest,
  type NewPullRequest,
  runConversation,
  type TaskFilter,
  watchConversation,
} from './conversation-commands.js';
import { keysUsage, parseKeysArguments, UsageError } from './parse-keys-arguments.js';
import { listSandboxes, stopSandboxes } from './sandbox-commands.js';
import { CommandError, EXIT, ServiceClient } from './service-client.js';

const FOOTER = `
SLIPWAY_URL and SLIPWAY_KEY say which service is asked, and as whom; without them it is the one of this folder.
Exit status: 0 done, 1 failed, 2 wrong usage, 3 the service cannot be reached, 4 not allowed.`;

interface Json {
  json?: boolean;
}

/** Runs one command of `slipway`, and returns its exit status; `serve` returns once the service listens. */
export async function runSlipway(
  args: readonly string[],
  output: CommandOutput,
  readConfig: () => CommandLineConfig = loadCommandLineConfig,
): Promise<number> {
  try {
    await slipwayProgram(output, readConfig).parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    return await exitStatus(error, output);
  }
}

async function exitStatus(error: unknown, output: CommandOutput): Promise<number> {
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  }
  if (error instanceof CommandError) {
    output.note(`slipway: ${error.message}`);
    return error.status;
  }
  // Imported here, because it brings the database, which most commands do without.
  const { failureText } = await import('./run-keys.js');
  output.note(`slipway: ${failureText(error)}`);
  return error instanceof UsageError ? EXIT.usage : EXIT.failed;
}

function slipwayProgram(output: CommandOutput, readConfig: () => CommandLineConfig): Command {
  const client = (): ServiceClient => new ServiceClient(readConfig());
  const program = new Command('slipway')
    .description('Runs software-development agents, and the service behind them.')
    .version(productVersion())
    .addHelpText('after', FOOTER)
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => output.result(text.trimEnd()),
      writeErr: (text) => output.note(text.trimEnd()),
    })
    .exitOverride();

  program
    .command('serve', { isDefault: true })
    .description('run the service (the default)')
    .allowExcessArguments()
    .action(async (_options: object, { args: [unknown] }: Command) => {
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
    .action(async ({ json = false, ...filter }: TaskFilter & Json) => {
      await listTasks(client(), filter, json, output);
    });
  program
    .command('run')
    .description('let an agent do a suggested task, or what a message asks for in a repository')
    .argument('<task|repository>', 'such as github:owner/name#12, or github:owner/name with a message')
    .argument('[message]', 'what the agent shall do')
    .option('--json', 'print events as JSON, one a line')
    .action(async (subject: string, message: string | undefined, { json = false }: Json) => {
      await runConversation(client(), subject, message, json, output);
    });
  program
    .command('watch')
    .description('follow a conversation until its agent rests')
    .argument('<conversation>')
    .option('--json', 'print events as JSON, one a line')
    .action(async (id: string, { json = false }: Json) => {
      await watchConversation(client(), id, json, output);
    });
  program
    .command('pull-request')
    .description("open the pull request of a conversation's branch")
    .argument('<conversation>')
    .option('--title <text>')
    .option('--body <text>')
    .option('--draft', 'not ready for review yet')
    .option('--source-branch <name>')
    .option('--target-branch <name>')
    .option('--json', 'print JSON')
    .action(async (id: string, { json = false, ...options }: NewPullRequest & Json) => {
      await openPullRequest(client(), id, options, json, output);
    });
  program
    .command('keys')
    .description('make, list and revoke API keys; "slipway keys help" says how')
    .argument('[arguments...]')
    .helpOption(false)
    .passThroughOptions()
    .allowUnknownOption()
    .action(async (keysArguments: string[]) => await runKeysCommand(keysArguments, readConfig, output));
  const sandboxes = program.command('sandboxes').description('list and stop sandboxes');
  sandboxes
    .command('list')
    .option('--json', 'print JSON')
    .action(async ({ json = false }: Json) => await listSandboxes(client(), json, output));
  sandboxes
    .command('stop')
    .description('stop sandboxes, which keep their files; also where no service runs in this folder')
    .argument('[ids...]')
    .option('--all', 'all that run')
    .action(async (ids: string[], { all = false }: { all?: boolean }) => {
      if (all === ids.length > 0) {
        throw new UsageError('sandboxes stop needs ids, or --all');
      }
      await stopAnywhere(readConfig(), all ? 'all' : ids, output);
    });
  program
    .command('support-bundle')
    .description('write versions, configuration without secrets, readiness and last log lines into a file')
    .action(async () => {
      const { writeSupportBundle } = await import('./support-bundle.js');
      const { name, problem } = await writeSupportBundle(client(), new Date());
      if (problem !== null) {
        output.note(`slipway: without what the service says of itself: ${problem}`);
      }
      output.result(name);
    });
  return program;
}

/** Over the API where an address was given, else on the database, which also makes the first key. */
async function runKeysCommand(
  args: string[],
  readConfig: () => CommandLineConfig,
  output: CommandOutput,
): Promise<void> {
  const config = readConfig();
  const command = parseKeysArguments(args);
  if (command.name === 'help') {
    output.result(keysUsage('slipway keys'));
  } else if (config.isLocal) {
    const [{ executeKeys }, { loadConfig }] = await Promise.all([
      import('./run-keys.js'),
      import('../config/load-config.js'),
    ]);
    await executeKeys(command, loadConfig(), output);
  } else {
    const { runRemoteKeys } = await import('./remote-keys.js');
    await runRemoteKeys(new ServiceClient(config), command, output);
  }
}

async function stopAnywhere(
  config: CommandLineConfig,
  ids: readonly string[] | 'all',
  output: CommandOutput,
): Promise<void> {
  try {
    await stopSandboxes(new ServiceClient(config), ids, output);
  } catch (error) {
    if (!(error instanceof CommandError && error.status === EXIT.unreachable && config.isLocal)) {
      throw error;
    }
    const { withLocalService } = await import('./local-service.js');
    await withLocalService(config.key, async (local) => await stopSandboxes(local, ids, output));
  }
}
