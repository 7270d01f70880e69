import { expect, it } from '@jest/globals';
import request from 'supertest';
import { useTestApp } from '../support/use-test-app.js';

const app = useTestApp({ CORS_ORIGINS: 'https://app.example.com' });

it('refuses what would do more than its sender thinks, on a route of our own', async () => {
  const { body } = await request(app.url)
    .post('/api/v1/webhook-endpoints')
    .set(app.user.headers)
    .send({ url: 'https://ci.example.com/slipway', event: ['conversation.finished'] })
    .expect(422);

  expect(body.detail).toEqual([
    {
      loc: ['body', 'event'],
      type: 'extra_forbidden',
      msg: 'This member is not known here: did you mean events?',
    },
  ]);
});

it('names what it ignores from clients of others, to pages too', async () => {
  const { headers } = await request(app.url)
    .post('/api/automation/v1/preset/prompt')
    .set(app.user.headers)
    .set('Origin', 'https://app.example.com')
    .send({
      name: 'Nightly',
      prompt: 'Look at the failing checks.',
      trigger: { type: 'cron', schedule: '0 3 * * *' },
      max_budget: 2,
    })
    .expect(201);

  expect(headers).toMatchObject({
    'x-ignored-members': 'max_budget',
    'access-control-expose-headers': expect.stringContaining('X-Ignored-Members'),
  });
});
