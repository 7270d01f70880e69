import { Argument, Command } from '@commander-js/extra-typings';

/** Listed in the order in which they run. */
export const BENCHES = [
  'start-up',
  'suggested-tasks',
  'settings',
  'sign-in',
  'sandboxes',
  'kubernetes',
  'conversations',
  'running',
  'warm',
  'egress',
  'automations',
  'streams',
  'load',
  'growth',
  'peer',
] as const;

/**
 * What the programs behind package.json's scripts take, by their files. Each answers --help, and ends with 2 for what it does not
 * know. A test compares the commands of the documentation with this table.
 */
export const COMMAND_LINES = {
  'scripts/start.mjs': plain(
    'start',
    'Runs the service. Its settings are variables: docs/configuration.md lists them.',
  ),
  'scripts/dev.mjs': plain(
    'dev',
    'Runs the service from its sources, and starts it again after every change.',
  ),
  'scripts/build.mjs': plain('build', 'Compiles and bundles everything into dist.'),
  'demo/demo.ts': npmRun(
    'demo',
    'Runs the service with stand-ins for git hosts and a model, and tells a story.',
  )
    .addArgument(new Argument('[story]', 'another story than the first one').choices(['automations']))
    .option('--once', 'end after the story; the default without a terminal'),
  'bench/run.ts': npmRun(
    'bench',
    'Measures speed and memory as ratios against baselines: bench/README.md.',
  ).addArgument(
    new Argument('[names...]', 'without them all but growth, kubernetes and peer').choices(BENCHES),
  ),
  'scripts/typescript-client.mjs': npmRun(
    'client:typescript',
    'Writes the TypeScript client from openapi.json.',
  )
    .argument('[folder]', 'where to, instead of clients/typescript')
    .argument('[document]', 'another document'),
  'scripts/web.mjs': npmRun(
    'web',
    'Runs the service with the web application of OpenHands on its own origin.',
  ).option('--install <folder>', 'only install the application there, and print where its files are'),
  'packages/agent-server/test/model/run.ts': npmRun(
    'test:model',
    'Has a real model, behind an API like that of OpenAI, do ten small tasks of an agent.',
  )
    .option('--url <address>', 'its API, which ends with /v1 at most servers', 'http://127.0.0.1:8080/v1')
    .option('--model <name>', 'as settings name it', 'openai/default')
    .option('--key <key>', 'where its server asks for one', 'none')
    .option('--text-tools', 'describe tools and call them in text (native_tool_calling: false)', false)
    .option('--minutes <number>', 'for each task at most', '10')
    .option('--only <text>', 'tasks with the text in their names; may be given several times', collect, [])
    .option('--list', 'only name the tasks', false),
  'test/clients/run.ts': npmRun(
    'test:clients',
    'Runs the programs of others, unmodified, against the service.',
  )
    .option('--only <text>', 'clients with the text in their names; may be given several times', collect, [])
    .option(
      '--cache <folder>',
      'where they are installed; CLIENTS_CACHE, or a temporary folder of the system',
    )
    .option('--list', 'show which there are'),
  'scripts/coverage.mjs': npmRun(
    'test:coverage',
    'Says which lines and branches the tests reach, folder by folder.',
  )
    .argument('[options...]', 'after another --: options of Jest')
    .option('--output <file>', 'where the figures are written', 'coverage/rooms.json')
    .option('--compare <file>', 'figures of an earlier run; ends with 1 where a folder has fallen')
    .option('--folder <folder>', 'where counts stay, to which a later run adds'),
  'scripts/mutants.mjs': npmRun(
    'test:mutants',
    'Makes small errors, one at a time, and says which the tests notice.',
  )
    .option('--seed <number>', 'of the choice', '13')
    .option('--count <number>', 'how many', '200')
    .option(
      '--output <file>',
      'where results are written; a run that was stopped goes on there',
      'coverage/mutants.json',
    )
    .option('--only <file>', 'those that an earlier run has noticed'),
  'scripts/test-openapi.mjs': plain(
    'test:openapi',
    'Lints openapi.json, and has generators of clients read it.',
  ),
  'scripts/test-stock.mjs': npmRun(
    'test:stock',
    'Runs a conversation with the stock OpenHands agent server; ends with 77 where it cannot be installed.',
  )
    .option('--image <name>', 'in a pod of the cluster of KUBECONFIG, whose nodes have this image')
    .option(
      '--outside',
      'with credentials outside, where STOCK_VENV names a folder below none of a user (/opt)',
    ),
  'scripts/test-acp.mjs': npmRun(
    'test:acp',
    'Runs real agents of the Agent Client Protocol against a scripted model; ends with 77 where none can be installed.',
  ).addArgument(
    new Argument('[agents...]', 'some of them').choices([
      'claude',
      'qwen',
      'codex',
      'gemini',
      'opencode',
      'copilot',
    ]),
  ),
  'scripts/test-keycloak.mjs': npmRun(
    'test:keycloak',
    'Signs people in at a real Keycloak; ends with 77 where none can be had.',
  ).option('--cache <folder>', 'where it is kept (~/.cache/slipway-keycloak)'),
  'scripts/test-kubernetes.mjs': npmRun(
    'test:kubernetes',
    'Runs the tests that need the cluster of KUBECONFIG.',
  ).argument('[part]', 'of the paths of tests, such as kubernetes/faults'),
  'scripts/image-agent-server.mjs': npmRun(
    'image:agent-server',
    'Builds the image of sandboxes in containers and pods.',
  )
    .argument('[options...]', 'after another --: options of docker build')
    .option('--base <image>', 'a Debian or Ubuntu with Node.js 24 and npm (node:24-bookworm-slim)')
    .option('--tag <name>', 'what to call it', 'slipway-agent-server')
    .option('--packages <names>', 'more Debian packages for agents to work with: "python3 build-essential"'),
  'scripts/release.mjs': npmRun(
    'release',
    'Builds what a release consists of into release/: docs/releasing.md.',
  )
    .argument('<version>', 'such as 1.2.3')
    .option('--dry-run', 'neither check the tree, nor stamp the version, nor build an image'),
  'scripts/check-migrations.mjs': plain(
    'migrations:check',
    'Compares what migrations make with the entities.',
  ),
  'test/fuzz/run.ts': npmRun(
    'fuzz',
    'Sends requests generated from openapi.json, and compares the responses with it.',
  )
    .option('--cases <number>', 'how many', '20000')
    .option('--seed <number>', 'repeats a run; printed at the beginning')
    .option('--only <text>', 'operations with the text in their names, such as "POST /api/settings"')
    .option('--target <name>', '"service" or "agent server"; both without it')
    .option('--minutes <number>', 'stops after this time', '15')
    .option('--optional', 'end with 0 where Schemathesis cannot be installed, and say so')
    .option('--cache <folder>', 'where it is installed; CLIENTS_CACHE, or a temporary folder of the system')
    .option('--verbose', 'show what Schemathesis prints'),
  'test/hostile/run.ts': npmRun(
    'hostile',
    'Attacks a running service as one of two tenants, and says what held.',
  )
    .option(
      '--backend <name>',
      'may be given several times; otherwise all that this machine has',
      collect,
      [],
    )
    .option('--only <text>', 'attacks with the text in their names; may be given several times', collect, [])
    .option('--except <text>', 'attacks without it, likewise', collect, [])
    .option('--timed', 'those that judge response times, for a machine that does nothing else', false)
    .option('--untimed', 'all others', false)
    .option('--part <n/m>', 'every m-th of these, from the n-th on: m runs at once make them all', '1/1')
    .option('--list', 'show which there are')
    .addHelpText(
      'after',
      `
Backends are process, unwrapped, docker, and kubernetes: the cluster of KUBECONFIG, as npm run test:kubernetes needs it.
SLIPWAY_TEST_POLICIES=enforced says that its network enforces NetworkPolicies: private addresses are to be closed then.`,
    ),
  'test/chaos/run.ts': npmRun(
    'chaos',
    'Damages a running service and what it needs under load; counts what is lost.',
  )
    .option(
      '--only <text>',
      'scenarios with the text in their names; may be given several times',
      collect,
      [],
    )
    .option('--short', 'fewer faults, and only the scenarios that fit into a minute and a half together')
    .option('--seed <number>', 'of the pauses between faults; printed at the beginning')
    .option(
      '--kills <number>',
      'how often the service is killed (100); no more after five and a half minutes',
    )
    .option('--list', 'show which scenarios there are')
    .option('--verbose', 'print what clients saw')
    .addHelpText(
      'after',
      `
It ends with 1 when something that was acknowledged is lost or doubled, a start does not become READY, a sandbox is left over,
or the service does not come back by itself.`,
    ),
  'test/rolling/run.ts': npmRun(
    'rolling',
    'Restarts replicas under load, and counts what their clients notice.',
  )
    .option(
      '--url <address>',
      'of a service that runs; without it two replicas and a balancer are started here',
    )
    .option('--key <key>', 'of an administrator; the load has a user of its own, which is removed at the end')
    .option('--restart <command>', 'restarts the replicas, and returns when that is done (sh -c)')
    .option('--restarts <number>', 'how often', '2')
    .option('--kill <command>', 'kills a replica, once, after the restarts; what is under way there is lost')
    .option('--seconds <number>', 'how long the load lasts at least', '30')
    .addHelpText(
      'after',
      `
Such as --restart "kubectl rollout restart deployment/slipway && kubectl rollout status deployment/slipway". The service has to
run with RATE_LIMIT_PER_MINUTE=0. It ends with 1 when a request failed that was not under way at a replica that was killed, when
events were lost or doubled, or when a start did not become READY.`,
    ),
  'scripts/docs.mjs': npmRun('docs', 'The documentation as a site.')
    .addArgument(
      new Argument('[command]', 'serve it, or build docs/.vitepress/dist')
        .choices(['dev', 'build', 'preview'])
        .default('dev'),
    )
    .argument('[options...]', 'after another --: options of vitepress'),
  'scripts/configuration.mjs': plain('docs:configuration', 'Writes docs/configuration.md from the code.'),
  'scripts/openapi.mjs': npmRun('openapi', 'Writes openapi.json from the code.').option(
    '--check',
    'only fail when it is not current',
  ),
  'scripts/check.mjs': npmRun('check', 'Runs the static checks, the build, and then the tests.').option(
    '--static',
    'leave out the tests',
  ),
  'scripts/check-house.mjs': plain(
    'check:house',
    'Measures the structure against what CONTRIBUTING.md promises.',
  ),
  'scripts/licenses.mjs': npmRun('licenses', 'Checks the licenses of all packages.').option(
    '--sbom',
    'print an SBOM (CycloneDX) instead',
  ),
};

function end({ exitCode }: { exitCode: number }): never {
  process.exit(exitCode === 0 ? 0 : 2);
}

function npmRun(name: string, about: string): Command {
  return new Command(`npm run ${name} --`).description(about).exitOverride(end);
}

function plain(name: string, about: string): Command {
  return npmRun(name, `${about} It takes no options.`).usage('--help');
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}
