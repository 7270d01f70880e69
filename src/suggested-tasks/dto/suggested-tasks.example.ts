import type { SuggestedTaskDto } from './suggested-task.dto.js';

/** The answer that the documents show. */
export const SUGGESTED_TASKS_EXAMPLE: SuggestedTaskDto[] = [
  {
    git_provider: 'github',
    task_type: 'FAILING_CHECKS',
    repo: 'acme/checkout',
    issue_number: 128,
    title: 'Retry card payments that time out',
  },
  {
    git_provider: 'gitlab',
    task_type: 'OPEN_ISSUE',
    repo: 'acme/platform/billing',
    issue_number: 41,
    title: 'Invoices show the wrong currency',
  },
  {
    git_provider: 'bitbucket',
    task_type: 'CREATE_MICROAGENT',
    repo: 'acme/warehouse',
    issue_number: 0,
    title: 'Add agent instructions to acme/warehouse',
  },
];
