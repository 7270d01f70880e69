import { describe, expect, it } from '@jest/globals';
import type { ModelMessage } from 'ai';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import {
  actionEvent,
  condensationEvent,
  errorEvent,
  messageEvent,
  observationEvent,
  systemPromptEvent,
} from '../../../../../test/fakes/sample-events.js';
import { messagesFromEvents } from './messages-from-events.js';

/** `role:part part`, short enough to compare. */
function outline(events: AgentEvent[]): string[] {
  return messagesFromEvents(events).messages.map((message) => `${message.role}: ${parts(message)}`);
}

function parts({ content }: ModelMessage): string {
  if (typeof content === 'string') {
    return content;
  }
  return content
    .map((part) => {
      switch (part.type) {
        case 'text':
        case 'reasoning':
          return part.type === 'text' ? part.text : `(${part.text})`;
        case 'tool-call':
          return `call ${part.toolCallId} ${JSON.stringify(part.input)}`;
        case 'tool-result':
          return `${part.output.type} ${part.toolCallId} ${'value' in part.output ? JSON.stringify(part.output.value).slice(1, -1) : ''}`;
        default:
          return part.type;
      }
    })
    .join(' | ');
}

const task = messageEvent('m1', 'user', 'do it');

describe('messagesFromEvents', () => {
  it('takes the instructions from the system prompt, wherever it is', () => {
    const prompt = systemPromptEvent('Be good.');
    expect(messagesFromEvents([task]).instructions).toBeNull();
    expect(messagesFromEvents([task, prompt]).instructions).toBe('Be good.');
    expect(
      messagesFromEvents([{ ...prompt, dynamic_context: { type: 'text', text: 'Here.' } }]).instructions,
    ).toBe('Be good.\n\nHere.');
  });

  it('groups the calls of one response, followed by their results', () => {
    const events = [
      task,
      actionEvent('a', 'r1', { thought: [{ type: 'text', text: 'Two things.' }] }),
      actionEvent('b', 'r1'),
      observationEvent('a', 'A'),
      messageEvent('m2', 'user', 'hurry'),
      errorEvent('b', 'broken'),
      actionEvent('c', 'r2'),
      observationEvent('c', ''),
      messageEvent('m3', 'agent', 'done'),
    ];
    expect(outline(events)).toEqual([
      'user: do it',
      'assistant: Two things. | call a {"thought":"hm"} | call b {"thought":"hm"}',
      'tool: text a A | error-text b broken',
      'user: hurry',
      'assistant: call c {"thought":"hm"}',
      'tool: text c (no output)',
      'assistant: done',
    ]);
  });

  it('adds an error for a call without a result', () => {
    expect(outline([task, actionEvent('a', 'r1')])).toEqual([
      'user: do it',
      'assistant: call a {"thought":"hm"}',
      'tool: error-text a The call was interrupted; whether it had an effect is not known.',
    ]);
  });

  it('reports a refusal', () => {
    const refusal: AgentEvent = {
      kind: 'UserRejectObservation',
      id: 'x',
      timestamp: '',
      source: 'environment',
      tool_name: 'think',
      tool_call_id: 'a',
      action_id: 'a',
      rejection_reason: 'too bold',
      rejection_source: 'user',
    };
    expect(outline([actionEvent('a', 'r1'), refusal]).at(-1)).toBe(
      'tool: text a The user refused this call: too bold',
    );
  });

  it('sends reasoning back until the user writes again', () => {
    const thinking = actionEvent('a', 'r1', { reasoning_content: 'deep' });
    expect(outline([task, thinking, observationEvent('a', 'A')])[1]).toMatch(
      /^assistant: \(deep\) \| call a/,
    );
    expect(
      outline([task, thinking, observationEvent('a', 'A'), messageEvent('m2', 'user', 'more')])[1],
    ).toMatch(/^assistant: call a/);
  });

  it('replaces condensed events with the last summary', () => {
    const events = [
      task,
      actionEvent('a', 'r1'),
      observationEvent('a', 'A'),
      condensationEvent('c1', ['a', 'a-result'], 'first', 1),
      actionEvent('b', 'r2'),
      observationEvent('b', 'B'),
      condensationEvent('c2', ['c1', 'b', 'b-result'], 'second', 1),
      actionEvent('c', 'r3'),
      observationEvent('c', 'C'),
    ];
    expect(outline(events)).toEqual([
      'user: do it',
      'user: Summary of the earlier part of this conversation, which was left out:\n\nsecond',
      'assistant: call c {"thought":"hm"}',
      'tool: text c C',
    ]);
  });
});
