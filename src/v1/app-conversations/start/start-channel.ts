/** Channel of the notifications about start tasks; the payload is the task's id. */
export const START_TASKS_CHANNEL = 'start_tasks';
