// Has a real model do ten small tasks of an agent: npm run test:model -- --url http://127.0.0.1:8080/v1
import { COMMAND_LINES } from '../../../../scripts/lib/command-lines.js';
import { MODEL_TASKS, resultTable, type TaskResult, tryTask } from './model-tasks.js';

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const values = COMMAND_LINES['packages/agent-server/test/model/run.ts'].parse().opts();
const tasks = MODEL_TASKS.filter(
  ({ name }) => values.only.length === 0 || values.only.some((part) => name.includes(part)),
);
const results: TaskResult[] = [];
for (const task of values.list ? [] : tasks) {
  const parameters = values.textTools ? { native_tool_calling: false } : {};
  const llm = { model: values.model, apiKey: values.key, baseUrl: values.url, parameters };
  results.push(await tryTask(task, llm, Number(values.minutes) * 60_000));
}
const done = results.filter(({ isDone }) => isDone).length;
const lines = values.list
  ? tasks.map(({ name }) => name)
  : [...resultTable(results), '', `${done} of ${results.length} done`];
lines.forEach(print);
process.exitCode = values.list || done > 0 ? 0 : 1;
