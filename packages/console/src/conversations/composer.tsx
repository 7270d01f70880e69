import type { KeyboardEvent } from 'react';
import { api, bodyOf } from '../api/client.js';
import { type Fields, Form, TextArea } from '../ui/form.js';
import { Callout } from '../ui/blocks.js';
import type { Conversation } from './conversation-queries.js';

export function Composer({ conversation: { id, sandbox_status: sandbox } }: { conversation: Conversation }) {
  const send = async (field: Fields) => {
    const body = { content: [{ type: 'text', text: field('message') }], run: true };
    await bodyOf(api.POST('/api/v1/app-conversations/{id}/send-message', { params: { path: { id } }, body }));
    return null;
  };
  return sandbox === 'MISSING' ? (
    <Callout kind="info" title="This conversation has ended">
      Its sandbox was deleted: it can be read, but not continued.
    </Callout>
  ) : (
    <div className="composer">
      <Form name="Reply" submit="Send" onSubmit={send} old={[['conversation', id]]}>
        <TextArea
          label="Message"
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
