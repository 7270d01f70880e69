import { describe, expect, it } from '@jest/globals';
import { budgetEvent, type ConversationReport, statusEvent } from './webhook-event.js';

const REPORT: ConversationReport = {
  conversation_id: 'c',
  sandbox_id: 's',
  result: null,
  error: null,
  tags: {},
  cost: null,
  repository: null,
  pull_request: null,
};

describe('statusEvent', () => {
  it.each([
    ['finished', 'conversation.finished'],
    ['waiting_for_confirmation', 'conversation.waiting_for_confirmation'],
    ['idle', undefined],
    ['ready', 'conversation.ready'],
    ['anything', undefined],
  ])('%s: %s', (status, type) => {
    expect(statusEvent(status, REPORT)?.type).toBe(type);
  });
});

describe('budgetEvent', () => {
  it.each([
    ['below', { cost: 0, budget: 1 }, { cost: 0.79, budget: 1 }, undefined],
    ['at 80 %', { cost: 0.79, budget: 1 }, { cost: 0.8, budget: 1 }, 0.8],
    ['between', { cost: 0.8, budget: 1 }, { cost: 0.99, budget: 1 }, undefined],
    ['all', { cost: 0.99, budget: 1 }, { cost: 1.2, budget: 1 }, 1],
    ['both at once', { cost: 0, budget: 1 }, { cost: 3, budget: 1 }, 1],
    ['beyond', { cost: 1.2, budget: 1 }, { cost: 2, budget: 1 }, undefined],
    ['a higher budget', { cost: 1, budget: 1 }, { cost: 1, budget: 2 }, undefined],
    ['80 % of a higher budget', { cost: 1, budget: 2 }, { cost: 1.7, budget: 2 }, 0.8],
    ['no budget', { cost: 1, budget: null }, { cost: 2, budget: null }, undefined],
  ])('%s', (_, before, after, threshold) => {
    expect(budgetEvent(before, after, {})?.data['threshold']).toBe(threshold);
  });
});
