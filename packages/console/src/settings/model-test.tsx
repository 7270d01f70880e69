import { useState } from 'react';
import { api, bodyOf, type Schemas } from '../api/client.js';
import { ActionButton, tell } from '../ui/actions.js';
import { Badge } from '../ui/blocks.js';

type Answer = Schemas['ModelCheckResponse'];

/** Asks the stored model what it can do, and sets what suits it. */
export function ModelTest() {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const test = async () => setAnswer(await bodyOf(api.POST('/api/v1/model-check', { body: {} })));
  const llm: Record<string, unknown> = Object.assign({}, ...(answer?.checks ?? []).map(({ setting }) => setting ?? {}));
  const apply = async () => {
    await bodyOf(api.POST('/api/v1/settings', { body: { agent_settings_diff: { llm } } }));
    tell('Set', `New conversations work with ${named(llm)}.`);
  };
  return (
    <>
      <ActionButton act={test} text="Test this model" />
      {answer && (
        <div className="scroller" role="region" aria-label="Test of the model" tabIndex={0}>
          <table aria-label={`What ${answer.model} can do`}>
            <thead>
              <tr>
                {['Ability', 'Result', 'Why'].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {answer.checks.map(({ name, result, detail }) => (
                <tr key={name}>
                  <td>{name.replaceAll('_', ' ')}</td>
                  <td>
                    <Badge state={result} />
                  </td>
                  <td>{detail}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {Object.keys(llm).length > 0 && <ActionButton act={apply} text={`Set ${named(llm)}`} />}
    </>
  );
}

function named(llm: Record<string, unknown>): string {
  return Object.entries(llm)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join(', ');
}
