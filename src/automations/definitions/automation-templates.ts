/** An automation that many want, to be filled in: the body of a new one, but for its repository. */
export interface AutomationTemplate {
  id: string;
  name: string;
  description: string;
  automation: Record<string, unknown>;
}

const ISSUE = '{{ event.issue.html_url }}';
const PULL_REQUEST = '{{ event.pull_request.html_url }}';

/** Templates for GitHub, which all begin with events; another source needs its own event keys. */
export const AUTOMATION_TEMPLATES: readonly AutomationTemplate[] = [
  {
    id: 'label-to-pull-request',
    name: 'Solve issues with a label',
    description: 'When an issue gets the label agent, an agent solves it and opens a pull request.',
    automation: {
      name: 'Solve labelled issues',
      prompt: `Solve the issue at ${ISSUE} and open a pull request that names it. Add a test that fails without your change. If the issue leaves open what is wanted, say in the pull request what you assumed.\n{{ event.issue.title }}\n{{ event.issue.body }}`,
      trigger: { type: 'event', source: 'github', on: 'issues.labeled', filter: "label.name == 'agent'" },
      follow: {},
    },
  },
  {
    id: 'nightly-failing-checks',
    name: 'Fix failing checks every night',
    description: 'At three in the morning, agents fix the checks of your pull requests that fail.',
    automation: {
      name: 'Nightly failing checks',
      tasks: { task_types: ['FAILING_CHECKS'], limit: 3 },
      trigger: { type: 'cron', schedule: '0 3 * * *', timezone: 'UTC' },
    },
  },
  {
    id: 'review-on-request',
    name: 'Review pull requests on request',
    description:
      'When your review of a pull request is requested, an agent reads it and writes what it finds.',
    automation: {
      name: 'Review on request',
      prompt: `Review the pull request at ${PULL_REQUEST}. Check it out, read the change with the code around it, and run the tests. Report errors first, then what is unclear, each with file and line; leave out matters of taste. Change nothing and push nothing.\n{{ event.pull_request.title }}\n{{ event.pull_request.body }}`,
      trigger: { type: 'event', source: 'github', on: 'pull_request.review_requested' },
      git: 'read',
    },
  },
  {
    id: 'dependency-updates',
    name: 'Update dependencies every week',
    description:
      'On Monday mornings, an agent updates dependencies and opens a pull request if the tests pass.',
    automation: {
      name: 'Weekly dependency updates',
      prompt:
        'Update the dependencies of this repository to their newest compatible versions. Read the notes of major releases before you take one, and adapt the code. Run the build and all tests. If they pass, open one pull request that lists each update and what it changes; if nothing is to be updated, open none.',
      trigger: { type: 'cron', schedule: '0 5 * * 1', timezone: 'UTC' },
      follow: {},
    },
  },
];
