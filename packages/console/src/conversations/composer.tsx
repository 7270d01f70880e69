import { useQueryClient } from '@tanstack/react-query';
import type { KeyboardEvent } from 'react';
import { api, bodyOf } from '../api/client.js';
import { TextArea } from '../ui/field.js';
import { Form } from '../ui/form.js';
import { Callout } from '../ui/problem.js';
import type { Conversation } from './conversation-queries.js';

export function Composer({ conversation: { id, sandbox_status: sandbox } }: { conversation: Conversation }) {
  const cache = useQueryClient();
  const send = async (field: (name: string) => string) => {
    const body = { content: [{ type: 'text', text: field('message') }], run: true };
    await bodyOf(api.POST('/api/v1/app-conversations/{id}/send-message', { params: { path: { id } }, body }));
    void cache.invalidateQueries({ queryKey: ['conversation', id] });
    return null;
  };
  return sandbox === 'MISSING' ? (
    <Callout kind="info" title="This conversation has ended">
      Its sandbox was deleted: it can be read, but not continued.
    </Callout>
  ) : (
    <div className="composer">
      <Form name="Send a message" submit="Send" onSubmit={send}>
        <TextArea
          label="Message"
          name="message"
          rows={2}
          required
          placeholder="What should the agent do next?"
          onKeyDown={sendByEnter}
          hint={
            sandbox === 'PAUSED'
              ? 'The sandbox is paused; a message resumes it.'
              : 'Enter sends, Shift+Enter begins a new line.'
          }
        />
      </Form>
    </div>
  );
}

function sendByEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  }
}
