// A cluster on this machine, in the trial's folder.

package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

const (
	startLimit = 60 * time.Second
	stopLimit  = 120 * time.Second
	// layoutFile keeps the members' addresses, which are part of the cluster's data.
	layoutFile = "members.json"
)

type member struct {
	Name, Client, Peer string
	process            *host.Process
}

type cluster struct {
	members []*member
}

// startCluster starts the members at the addresses of the folder, or of a new cluster.
func startCluster(config *driver.Config) (*cluster, error) {
	made := &cluster{}
	layout := filepath.Join(config.Path, layoutFile)
	if config.Create {
		if err := made.create(config, layout); err != nil {
			return nil, err
		}
	} else if err := host.ReadLayout(layout, &made.members); err != nil {
		return nil, err
	}
	var peers []string
	for _, each := range made.members {
		peers = append(peers, each.Name+"=http://"+each.Peer)
	}
	for place, each := range made.members {
		var err error
		if each.process, err = each.start(config, place+1, strings.Join(peers, ",")); err != nil {
			return nil, errors.Join(err, made.stop(""))
		}
	}
	return made, nil
}

func (c *cluster) create(config *driver.Config, layout string) error {
	count, err := strconv.Atoi(config.Text("members"))
	if err != nil {
		return err
	}
	for number := range count {
		client, err1 := host.MemberAddress(number + 1)
		peer, err2 := host.MemberAddress(number + 1)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		c.members = append(c.members, &member{Name: fmt.Sprintf("member-%d", number+1), Client: client, Peer: peer})
	}
	text, err := json.Marshal(c.members)
	if err != nil {
		return err
	}
	return os.WriteFile(layout, text, 0o600)
}

func (m *member) start(config *driver.Config, number int, peers string) (*host.Process, error) {
	client, peer := "http://"+m.Client, "http://"+m.Peer
	return host.Start(host.Spec{
		Program: config.Text("server"), Package: "etcd-server", Folder: config.Path, Log: m.Name + ".log", Member: number,
		Arguments: []string{
			"--name", m.Name, "--data-dir", m.Name,
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", peers, "--initial-cluster-token", "kvdyno", "--initial-cluster-state", "new",
			"--quota-backend-bytes", strconv.Itoa(quotaBytes),
			"--logger", "zap", "--log-outputs", "stderr",
		},
	})
}

// quotaBytes is the largest size of a database that etcd recommends.
const quotaBytes = 8 << 30

func (c *cluster) clients() []string {
	var all []string
	for _, each := range c.members {
		all = append(all, each.Client)
	}
	return all
}

// announced are the members with their processes.
func (c *cluster) announced() []host.Member {
	var all []host.Member
	for _, each := range c.members {
		all = append(all, host.Member{Name: each.Name, Process: each.process})
	}
	return all
}

// untilReady waits until each member knows a leader and has caught up.
func (c *cluster) untilReady(client *clientv3.Client) error {
	begun := time.Now()
	for _, each := range c.members {
		for !each.isReady(client) {
			if each.process.HasEnded() {
				return each.process.Failed("did not start")
			}
			if time.Since(begun) > startLimit {
				return each.process.Failed("does not answer")
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

func (m *member) isReady(client *clientv3.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	status, err := client.Status(ctx, m.Client)
	return err == nil && status.Leader != 0 && status.RaftAppliedIndex == status.RaftIndex
}

// explain adds to an error that a member has ended, if one has.
func (c *cluster) explain(err error) error {
	for _, each := range c.members {
		if each.process != nil && each.process.HasEnded() {
			return driver.Fail(driver.Failed, "%v: %v", err, each.process.Failed("has ended"))
		}
	}
	return err
}

// stop stops the members, the leader last: it would wait for seconds to give its office to one that stops too.
func (c *cluster) stop(leader string) error {
	var first, last []*member
	for _, each := range c.members {
		switch {
		case each.process == nil:
		case each.Client == leader:
			last = append(last, each)
		default:
			first = append(first, each)
		}
	}
	return errors.Join(stopAll(first), stopAll(last))
}

func stopAll(members []*member) error {
	var all error
	for _, each := range members {
		all = errors.Join(all, each.process.Signal(syscall.SIGTERM))
	}
	for _, each := range members {
		all = errors.Join(all, each.process.Wait(stopLimit))
	}
	return all
}
