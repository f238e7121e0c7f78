<?php
// SPDX-License-Identifier: GPL-2.0
// A conversation with a daemon, by Debian's php-pda-pheanstalk; or a worker, see talk.js.
//
// Usage: php talk.php pheanstalk HOST PORT [TUBE]

declare(strict_types=1);

require '/usr/share/php/Pheanstalk/autoload.php';

use Pheanstalk\Contract\PheanstalkInterface;
use Pheanstalk\Exception\ServerException;
use Pheanstalk\Job;
use Pheanstalk\Pheanstalk;

function holds(bool $condition, string $text): void
{
	if (!$condition)
		throw new RuntimeException($text);
}

function is_job(?Job $job, int $id, string $body): void
{
	holds($job !== null, "no job, expected: $id");
	holds($job->getId() === $id, "job {$job->getId()}, expected: $id");
	holds($job->getData() === $body, "the body of $id is another one");
}

function finds_nothing(callable $call, string $what): void
{
	try {
		$value = $call();
	} catch (ServerException $error) {
		return;
	}
	holds($value === null, "$what was found");
}

function conversation(Pheanstalk $client, string $tube): void
{
	$client->useTube($tube);
	$client->watchOnly($tube);
	$first = $client->put('first', 10, 0, 60);
	$second = $client->put('second', 5, 0, 60);
	$job = $client->reserve();
	is_job($job, $second->getId(), 'second');
	$client->touch($job);
	$client->release($job, 20, 0);
	$job = $client->reserve();
	is_job($job, $first->getId(), 'first');
	$client->bury($job, 15);
	holds($client->statsJob($job)['state'] === 'buried', 'not buried');
	is_job($client->peekBuried(), $first->getId(), 'first');
	holds($client->kick(10) === 1, 'kick');
	$job = $client->reserve();
	is_job($job, $first->getId(), 'first');
	$client->release($job, 15, 1000);
	is_job($client->peekDelayed(), $first->getId(), 'first');
	$client->kickJob($job);
	$job = $client->reserve();
	is_job($job, $first->getId(), 'first');
	$client->delete($job);
	finds_nothing(fn () => $client->delete($job), 'what was deleted');
	is_job($client->peekReady(), $second->getId(), 'second');
	$client->delete($client->reserve());
	finds_nothing(fn () => $client->reserveWithTimeout(0), 'a job');
	$start = hrtime(true);
	$late = $client->put('late', 5, 1, 60);
	is_job($client->reserveWithTimeout(100), $late->getId(), 'late');
	holds(hrtime(true) - $start >= 1000000000, 'a delay of 1 s came early');
	$client->delete($late);
	foreach ([implode('', array_map('chr', range(0, 255))), str_repeat('ä€', 10000), "\r\n"]
		 as $body) {
		$put = $client->put($body, 5, 0, 60);
		is_job($client->reserve(), $put->getId(), $body);
		$client->delete($put);
	}
	$client->pauseTube($tube, 1000);
	$client->resumeTube($tube);
	holds(in_array($tube, $client->listTubes(), true), 'list-tubes');
	holds($client->listTubeUsed(true) === $tube, 'list-tube-used');
	holds($client->listTubesWatched(true) === [$tube], 'list-tubes-watched');
	holds((int)$client->stats()['current-connections'] >= 1, 'stats');
	holds((int)$client->statsTube($tube)['current-jobs-ready'] === 0, 'stats-tube');
}

/* These calls are those of Laravel's worker, too: release(), or delete(). */
function work(Pheanstalk $client): bool
{
	$job = $client->reserve();

	switch ($job->getData()) {
	case 'release':
		$client->release($job, 100, 0);
		break;
	case 'crash':
		echo "crashed {$job->getId()}\n";
		exit(3);
	case 'slow':
		usleep(300000);
		break;
	default:
		$client->delete($job);
		echo "deleted {$job->getId()}\n";
	}
	return $job->getData() !== 'stop';
}

$client = Pheanstalk::create($argv[2], (int)$argv[3]);
if (isset($argv[4])) {
	$client->watchOnly($argv[4]);
	while (work($client))
		;
} else {
	conversation($client, 'pheanstalk-1');
}
